import { type Behaviour, describeBehaviour } from './behaviour';
import type { Delivery } from './deliveries';

const STYLE = `
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a; background: #fff }
form { display: inline-block; margin: 0 .5rem .5rem 0 }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #999; padding: .4rem .6rem; text-align: left; vertical-align: top }
pre { margin: 0; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere }
td:nth-child(2) { overflow-wrap: anywhere }
input { width: 5rem }
/* A phone: one delivery below the other, its cells in words. */
@media (max-width: 45rem) {
  table, caption, tbody, tr, td { display: block; text-align: left }
  thead { clip-path: inset(50%); position: absolute; width: 1px; height: 1px; overflow: hidden }
  tr { border-bottom: 1px solid #999; padding: .4rem 0 }
  td { border: 0; padding: 0; overflow-wrap: anywhere }
}`;

/** Everything that came from outside passes through here. */
export function escapeHtml(text: string): string {
  const names: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replaceAll(/[&<>"']/g, (character) => names[character] ?? '');
}

/** What the demo partner got, and buttons for how it behaves. No script. */
export function renderPage(behaviour: Behaviour, deliveries: readonly Delivery[]): string {
  return `<!doctype html>
<html lang="en-GB">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Demo partner: deliveries</title><style>${STYLE}</style></head>
<body>
<main>
<h1>Demo partner</h1>
<p>Webhooks come to <code>POST /webhooks</code>. At present it <strong>${escapeHtml(describeBehaviour(behaviour))}</strong>.</p>
<h2>Behaviour</h2>
${button('ok', 'Answer 200')}
${button('hang', 'Hang')}
${button('status', 'Always answer', number('status', 'status', 503, 200, 599))}
${button('fail-times', 'Fail', `${number('fail-status', 'status', 503, 200, 599)} ${number('times', 'times', 3, 1, 1000)}`)}
<h2>Deliveries (${deliveries.length})</h2>
<p><a href="/">Show the newest</a> · <a href="/deliveries">as JSON</a></p>
${deliveries.length === 0 ? '<p>None yet.</p>' : table(deliveries)}
</main>
</body>
</html>
`;
}

function button(mode: string, label: string, fields = ''): string {
  return `<form method="post" action="/behaviour"><input type="hidden" name="mode" value="${mode}"><button>${label}</button> ${fields}</form>`;
}

function number(id: string, name: string, value: number, min: number, max: number): string {
  return `<label for="${id}">${name}</label> <input id="${id}" name="${name}" type="number" value="${value}" min="${min}" max="${max}">`;
}

function table(deliveries: readonly Delivery[]): string {
  return `<table>
<caption>The last ${deliveries.length}, newest first</caption>
<thead><tr><th scope="col">Received</th><th scope="col">Event</th><th scope="col">Signature</th><th scope="col">Answer</th><th scope="col">Content</th></tr></thead>
<tbody>
${deliveries.map(row).join('\n')}
</tbody>
</table>`;
}

function row(delivery: Delivery): string {
  const headers = Object.entries(delivery.headers).map(([name, value]) => `${name}: ${value}`);
  const cells = [
    `<time>${escapeHtml(delivery.receivedAt)}</time>`,
    `${escapeHtml(delivery.eventType ?? 'unknown')}<br>${escapeHtml(delivery.eventId ?? '')}`,
    delivery.verified ? 'verified' : `<strong>not verified</strong>: ${escapeHtml(delivery.why ?? '')}`,
    delivery.answered === null ? 'no answer' : `answered ${delivery.answered}`,
    `<details><summary>Body and headers</summary><pre>${escapeHtml(pretty(delivery.body))}</pre><hr><pre>${escapeHtml(headers.join('\n'))}</pre></details>`,
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
