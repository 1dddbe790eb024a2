import { type Behaviour, type Delivery, describeBehaviour } from './deliveries';
import type { NotificationItem, Story } from './story';

/** Everything that came from outside passes through here. */
function escapeHtml(text: string): string {
  const names: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replaceAll(/[&<>"']/g, (character) => names[character] ?? '');
}

interface PageContent {
  readonly behaviour: Behaviour;
  readonly deliveries: readonly Delivery[];
  /** What the API says of the newest notifications, or why it says nothing; null without a partner's key. */
  readonly log: readonly NotificationItem[] | string | null;
  readonly story: Story | null;
  /** The outcome of the last order. */
  readonly told: string;
}

/** What the demo partner received, what the API says was sent, and buttons. Only the story's progress needs the script. */
export function renderPage({ behaviour, deliveries, log, story, told }: PageContent): string {
  return `<!doctype html>
<html lang="en-GB">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Demo partner: deliveries</title><link rel="stylesheet" href="/look.css"><script type="module" src="/receiver.js"></script></head>
<body>
<header>
<h1>Demo partner</h1>
<p>Webhooks come to <code>POST /webhooks</code>.</p>
</header>
<main class="rows">
<section aria-labelledby="behaviour-title">
<h2 id="behaviour-title">Behaviour</h2>
<div id="behaviour">
<p>At present it <strong>${escapeHtml(describeBehaviour(behaviour))}</strong>.</p>
${button('ok', 'Answer 200')}
${button('hang', 'Hang')}
${button('status', 'Always answer', number('status', 'status', 503, 200, 599))}
${button('fail-times', 'Fail', `${number('fail-status', 'status', 503, 200, 599)} ${number('times', 'times', 3, 1, 1000)}`)}
</div>
</section>
${story === null ? '' : storySection(story)}
${log === null ? '' : logSection(log, told)}
<section aria-labelledby="deliveries-title">
<h2 id="deliveries-title">What came</h2>
<div id="deliveries">
<p><a href="/">Show the newest</a> · <a href="/deliveries">as JSON</a></p>
${deliveries.length === 0 ? '<p>None yet.</p>' : table(`The last ${deliveries.length}, newest first`, ['Received', 'Event', 'Signature', 'Answer', 'Content'], deliveries.map(deliveryCells))}
</div>
</section>
</main>
</body>
</html>
`;
}

function storySection({ lines, running }: Story): string {
  return `<section aria-labelledby="story-title">
<h2 id="story-title">When something was missed</h2>
<form method="post" action="/story"><button>My receiver was down</button> hangs, misses some events of a new application, and catches up: about a minute.</form>
<div id="story" role="status">
${lines.length === 0 ? '' : `<ol>${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ol>`}${running ? '<p>Please wait …</p>' : ''}
</div>
</section>`;
}

function logSection(log: readonly NotificationItem[] | string, told: string): string {
  return `<section aria-labelledby="log-title">
<h2 id="log-title">What was sent</h2>
<p>The newest 25, as <code>GET /v1/notifications</code> has them.</p>
<p role="status">${escapeHtml(told)}</p>
<div id="log">
${typeof log === 'string' ? `<p>${escapeHtml(log)}</p>` : log.length === 0 ? '<p>None yet.</p>' : table('Notifications, newest first', ['Created', 'Event', 'Status', 'Last attempt', 'Next', 'Order'], log.map(logCells))}
</div>
</section>`;
}

function table(caption: string, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  return `<table class="list">
<caption>${caption}</caption>
<thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>
${rows.map(row).join('\n')}
</tbody>
</table>`;
}

function logCells(item: NotificationItem): string[] {
  const { last_attempt: last, next_attempt_at: next, reason, sequence } = item;
  const answered =
    last && (last.http_status === null ? (last.failure ?? last.outcome) : `answered ${last.http_status}`);
  return [
    `<time>${escapeHtml(item.created_at)}</time>`,
    `${escapeHtml(item.event_type)}${sequence === null ? '' : `, no. ${sequence}`}<br><code>${escapeHtml(item.event_id)}</code>`,
    `${escapeHtml(item.status)}${reason === null ? '' : `: ${escapeHtml(reason)}`}`,
    last === null ? 'none' : `${escapeHtml(String(answered))}, no. ${item.attempts}`,
    next === null ? 'none' : `<time>${escapeHtml(next)}</time>`,
    // Others are under way, or a test: the API says so to who asks nevertheless.
    sequence !== null && ['delivered', 'failed', 'held', 'expired'].includes(item.status)
      ? `<form method="post" action="/resend"><input type="hidden" name="notification_id" value="${escapeHtml(item.notification_id)}"><button aria-label="Send again: ${escapeHtml(item.event_id)}">Send again</button></form>`
      : 'none',
  ];
}

function button(mode: string, label: string, fields = ''): string {
  return `<form method="post" action="/behaviour"><input type="hidden" name="mode" value="${mode}"><button>${label}</button> ${fields}</form>`;
}

function number(id: string, name: string, value: number, min: number, max: number): string {
  return `<label for="${id}">${name}</label> <input id="${id}" name="${name}" type="number" value="${value}" min="${min}" max="${max}">`;
}

function deliveryCells(delivery: Delivery): string[] {
  const headers = Object.entries(delivery.headers).map(([name, value]) => `${name}: ${value}`);
  return [
    `<time>${escapeHtml(delivery.receivedAt)}</time>`,
    `${escapeHtml(delivery.eventType ?? 'unknown')}<br>${escapeHtml(delivery.eventId ?? '')}`,
    delivery.verified ? 'verified' : `<strong>not verified</strong>: ${escapeHtml(delivery.why ?? '')}`,
    delivery.answered === null ? 'no answer' : `answered ${delivery.answered}`,
    `<details><summary>Body and headers</summary><pre>${escapeHtml(pretty(delivery.body))}</pre><hr><pre>${escapeHtml(headers.join('\n'))}</pre></details>`,
  ];
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
