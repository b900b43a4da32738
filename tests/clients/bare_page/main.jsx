// A page that has nothing but the component that we tell people to write.
import { createRoot } from "react-dom/client";

import { Chat } from "./chat.jsx";

createRoot(document.getElementById("root")).render(<Chat id="trip-to-oslo" />);
