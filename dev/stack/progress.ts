import type { StackInfo } from './types';

/** Numbered steps, `[1/5] Postgres ... 1.2 s`, and between them lines about what takes long. */
export function createProgress(write: (text: string) => void, steps: number) {
  let number = 0;
  let onStepLine = false;
  const endLine = () => {
    if (onStepLine) write('\n');
    onStepLine = false;
  };
  return {
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      number += 1;
      const startedAt = performance.now();
      const label = `[${number}/${steps}] ${name}`;
      write(`${label} ...`);
      onStepLine = true;
      try {
        const result = await task();
        const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
        write(onStepLine ? ` ${took}\n` : `${label}: ${took}\n`);
        onStepLine = false;
        return result;
      } catch (error) {
        endLine();
        throw error;
      }
    },
    note(text: string): void {
      endLine();
      write(`      ${text}\n`);
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

  Shop       ${info.shopUrl}  from a product page to a completed credit application
  Developer  ${info.shopUrl}/developer  its calls and webhooks
  Docs       ${apiUrl}/docs  the contract, with the guide for partners
  Temporal   ${temporal}

Try a quote:

curl --cacert ${shellWord(caFile)} ${apiUrl}/v1/finance-quote \\
  -H 'Authorization: Bearer ${apiKeys.test}' -H 'Content-Type: application/json' \\
  -d ${shellWord(JSON.stringify(body))}

Try a test notification${waits || ', which the page for developers then shows'}:

curl -X POST --cacert ${shellWord(caFile)} ${apiUrl}/v1/notifications/test \\
  -H 'Authorization: Bearer ${apiKeys.test}'

In another terminal \`npm run demo\` walks three credit applications. Ctrl-C stops everything.
`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
