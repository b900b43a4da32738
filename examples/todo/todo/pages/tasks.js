const list = document.getElementById("tasks");
const form = document.getElementById("new");

async function ask(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body ? { "Content-Type": "application/json" } : {},
    body: body && JSON.stringify(body),
  });
  if (answer.status === 401) location.reload();
  return answer.status === 204 ? null : answer.json();
}

function item(task) {
  const done = Object.assign(document.createElement("input"), { type: "checkbox", checked: task.done });
  const label = document.createElement("label");
  const remove = Object.assign(document.createElement("button"), { textContent: "Delete" });
  remove.setAttribute("aria-label", `Delete ${task.title}`);
  done.onchange = () => ask("PATCH", `tasks/${task.id}`, { done: done.checked }).then(show);
  remove.onclick = () => ask("DELETE", `tasks/${task.id}`).then(show);
  label.append(done, task.title);
  const row = document.createElement("li");
  row.append(label, remove);
  return row;
}

let shown = "";

/** Draws the tasks where they have changed, here or in the chat. */
async function show() {
  const tasks = await ask("GET", "tasks");
  if (JSON.stringify(tasks) === shown) return;
  shown = JSON.stringify(tasks);
  list.replaceChildren(...tasks.map(item));
}

form.onsubmit = async (event) => {
  event.preventDefault();
  await ask("POST", "tasks", { title: form.elements.title.value });
  form.reset();
  await show();
};

const me = await ask("GET", "me");
document.getElementById("name").textContent = me.name;
if (me.chat) {
  const chat = document.getElementById("chat");
  chat.src = me.chat;
  chat.hidden = false;
}
await show();
setInterval(show, 1000);
