import { createRoot } from "react-dom/client";
import { Chat } from "./chat.jsx";

const API = "/api/ai-sdk/chat";

// The chat's id is in the address, so that a reload shows the same chat.
const id = location.hash.slice(1) || crypto.randomUUID();
history.replaceState(null, "", `#${id}`);
const { messages } = await (await fetch(`${API}/${id}?version=7`)).json();

createRoot(document.getElementById("root")).render(<Chat api={API} id={id} messages={messages} />);
