// What all pages of the shop share.

export const at = (id) => document.getElementById(id);

/** @param properties of the node, or attributes where the name has a dash. */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-')) node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children);
  return node;
}

export const span = (className, ...children) => element('span', { className }, ...children);

/** @throws with the words of the API, and its code, when it has refused. */
async function ask(path, options) {
  const response = await fetch(path, options);
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.message ?? answer.error), { code: answer.code });
}

export const get = (path) => ask(path);
export const post = (path, body = {}) =>
  ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** Shows what went wrong in the page's alert, or takes it away. */
export function showFault(error) {
  const words = error === undefined ? '' : error.message;
  at('fault').textContent = error?.code === undefined ? words : `${words} (${error.code})`;
}

/** Follows the shop's stream: `render` gets everything so far, newest first, and again after each event. */
export function follow(render) {
  let now;
  const source = new EventSource('/stream');
  source.addEventListener('message', ({ data }) => {
    const { kind, value } = JSON.parse(data);
    // The first one, and the first after the connection was lost.
    if (kind === 'now') now = { ...value, application: null };
    else if (kind === 'deliveries' || kind === 'calls') now[kind] = [value, ...now[kind]].slice(0, 200);
    else now[kind] = value;
    render(now);
  });
}

/** @returns null for what is not JSON. */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** "1299.00" as "£1,299.00"; what is no amount stays as it is. */
export function pounds(amount) {
  const [whole, pence] = amount.split('.');
  if (!/^\d+$/.test(whole)) return amount;
  return `£${whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')}${pence === undefined ? '' : `.${pence}`}`;
}

/** Names of fields and states are designed for display: `_` becomes a space, the first letter a capital, abbreviations capitals. */
export function labelOf(name) {
  const text = name.replaceAll('_', ' ').replace(/\b(apr|url)\b/, (word) => word.toUpperCase());
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export const timeOf = (moment) => element('time', { dateTime: moment }, moment.slice(11, 19));
