import type { StackInfo } from './types';

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
  return `
API        ${apiUrl}
Internal   ${internalUrl}
Temporal   ${temporal}
Receiver   ${info.receiverUrl}  what the demo partner got (certificate by the same authority as the API's)
Shop       ${info.shopUrl}  a product page that asks for quotes, with that partner's inbox
Partner    ${partnerId}
Test key   ${apiKeys.test}
Live key   ${apiKeys.live}

Merchants to ask for:
${merchants.map(({ id, shows }) => `  ${id}  ${shows}`).join('\n')}

A quote:

curl --cacert ${shellWord(caFile)} ${apiUrl}/v1/finance-quote \\
  -H 'Authorization: Bearer ${apiKeys.test}' -H 'Content-Type: application/json' \\
  -d ${shellWord(JSON.stringify(body))}

A test notification, which the receiver's page then shows:

curl -X POST --cacert ${shellWord(caFile)} ${apiUrl}/v1/notifications/test \\
  -H 'Authorization: Bearer ${apiKeys.test}'

Ctrl-C stops everything.
`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
