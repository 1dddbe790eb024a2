import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { productItemSchema, quoteResponseSchema } from '../../contracts/quote-response';
import * as recovery from '../../contracts/notification-recovery';
import { notificationListSchema, testNotificationResponseSchema } from '../../contracts/notifications';
import { webhookKeysSchema } from '../../contracts/webhook-endpoint';
import { applicationEventSchema, testEventExamples } from '../../contracts/webhook-event';

const guide = readFileSync(`${__dirname}/../../docs/partner-guide.md`, 'utf8');

/** The first block of this language that holds this text. */
function block(language: string, holding: string): string {
  const blocks = [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  return blocks.map(([, code = '']) => code).find((code) => code.includes(holding)) ?? '';
}

test.each([
  ['"notification_id"', testNotificationResponseSchema],
  ['"sequence"', applicationEventSchema],
  ['"finance_offer_summary"', quoteResponseSchema],
  ['"keys"', webhookKeysSchema],
  ['"next_cursor"', notificationListSchema],
  ['{ "matched": 42 }', recovery.recoverDryRunSchema],
  ['"recovery_id": "rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA", "matched"', recovery.recoverResponseSchema],
  ['"resent"', recovery.recoveryResponseSchema],
] as const)('the example with %s fits the contract, with every field', (holding, schema) => {
  const example: unknown = JSON.parse(block('json', holding));
  expect((schema as z.ZodObject).strict().parse(example)).toEqual(example);
});

test('the test event that the guide shows is the one of the contract, byte for byte', () => {
  const [, body = ''] = block('http', 'service-test: true').split('\n\n');
  expect(body.trimEnd()).toBe(JSON.stringify(testEventExamples.lender_a.value));
});

test('the rendered product has a label for every field, made by the display rule', () => {
  const capitals: Record<string, string> = { apr: 'APR', merchant_finance_url: 'Merchant finance URL' };
  const labelOf = (field: string) => {
    const text = field.replaceAll('_', ' ');
    return capitals[field] ?? text.charAt(0).toUpperCase() + text.slice(1);
  };
  const rows = [...guide.matchAll(/^> \| ([^|]+?) +\| ([^|]+?) +\|$/gm)].map((row) => row.slice(1));
  const shown = Object.fromEntries(rows.filter(([name]) => !/^-+$|^Representative/.test(name ?? '')));
  expect(Object.keys(shown)).toEqual(Object.keys(productItemSchema.shape).map(labelOf));
  expect(shown['Initial payment due value']).toBe('1');
  expect(shown['Initial payment due unit']).toBe('months');
});
