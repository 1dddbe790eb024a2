import type { StackInfo } from './types';

/** Enough to see that something moves, in a log that keeps every line. */
const FIGURE_LINE_MS = 15_000;

/** Where no line can be drawn again: of what moves (`42 packages compiled`), one line now and then; all the rest. */
export function nowAndThen(say: (text: string) => void): (text: string, moving?: boolean) => void {
  let saidAt = performance.now();
  return (text, moving = false) => {
    if (moving && performance.now() - saidAt < FIGURE_LINE_MS) return;
    saidAt = performance.now();
    say(text);
  };
}

const CLEAR_LINE = '\r\u001B[K';

/**
 * Numbered steps: `[1/5] Postgres ... 1.2 s`, and in between what takes long.
 * @param redraws whether the output is a terminal, on which a line can be drawn again.
 */
export function createProgress(write: (text: string) => void, steps: number, redraws = false) {
  let number = 0;
  let open: 'nothing' | 'step' | 'figure' = 'nothing';
  const closeLine = () => {
    if (open === 'step') write('\n');
    if (open === 'figure') write(CLEAR_LINE);
    open = 'nothing';
  };
  const line = (text: string) => {
    closeLine();
    write(`      ${text}\n`);
  };
  const figure = (text: string) => {
    if (open === 'step') closeLine();
    write(`${CLEAR_LINE}      ${text}`);
    open = 'figure';
  };
  const lines = nowAndThen(line);
  return {
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      number += 1;
      const startedAt = performance.now();
      const label = `[${number}/${steps}] ${name}`;
      write(`${label} ...`);
      open = 'step';
      try {
        const result = await task();
        const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`;
        const sameLine = open === 'step';
        if (!sameLine) closeLine();
        write(sameLine ? ` ${took}` : `${label}: ${took}`);
        open = 'nothing';
        return result;
      } catch (error) {
        closeLine();
        throw error;
      }
    },
    /** @param moving whether it replaces the last one that moved, like `42 packages compiled`. */
    note(text: string, moving = false): void {
      if (moving && redraws) figure(text);
      else lines(text, moving);
    },
  };
}

/** What to open and what to paste, once everything is up. */
export function welcome(info: StackInfo): string {
  const { apiUrl, internalUrl, partnerId, apiKeys, merchants, caFile } = info;
  const temporal =
    info.temporalUiUrl ?? info.temporalAddress ?? 'none: webhooks wait (see the warning above)';
  const body = {
    merchant_id: merchants[0]?.id ?? 'M000001',
    partner_id: partnerId,
    loan_amount: '1000.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance',
    merchant_reference: 'BASKET-1',
  };
  const waits = info.temporalAddress === null ? ' (webhooks wait: there is no Temporal)' : '';
  return `
API        ${apiUrl}
Internal   ${internalUrl}
Partner    ${partnerId}
Test key   ${apiKeys.test}
Live key   ${apiKeys.live}

Merchants to ask for:
${merchants.map(({ id, shows }) => `  ${id}  ${shows}`).join('\n')}

Open in a browser, which warns of the certificate until it trusts ${caFile}:

  Shop       ${info.shopUrl}  a product page with an offer, and the demo partner's inbox
  Receiver   ${info.receiverUrl}  the webhooks that the demo partner got
  Docs       ${apiUrl}/docs  the contract, with the guide for partners
  Temporal   ${temporal}

Try a quote:

curl --cacert ${shellWord(caFile)} ${apiUrl}/v1/finance-quote \\
  -H 'Authorization: Bearer ${apiKeys.test}' -H 'Content-Type: application/json' \\
  -d ${shellWord(JSON.stringify(body))}

Try a test notification${waits || ', which the shop and the receiver then show'}:

curl -X POST --cacert ${shellWord(caFile)} ${apiUrl}/v1/notifications/test \\
  -H 'Authorization: Bearer ${apiKeys.test}'

In another terminal \`npm run demo\` walks three credit applications. Ctrl-C stops everything.
`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
