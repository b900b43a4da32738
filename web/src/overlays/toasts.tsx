import { useStore } from "@threadkeep/react";

import { dismissToast, toasts } from "../state/toasts";

export function Toasts() {
  const all = useStore(toasts);
  return (
    <div className="toasts" role="status">
      {all.map(({ id, text, action }) => (
        <div key={id} className="toast">
          <span>{text}</span>
          {action && (
            <button
              type="button"
              onClick={() => {
                action.run();
                dismissToast(id);
              }}
            >
              {action.label}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
