import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";

export function Chat({ id }) {
  return (
    <CopilotKitProvider runtimeUrl="/api/ag-ui" useSingleEndpoint={false}>
      <CopilotChat agentId="default" threadId={id} />
    </CopilotKitProvider>
  );
}
