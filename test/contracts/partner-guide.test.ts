import { readFileSync } from 'node:fs';
import { testNotificationResponseSchema } from '../../contracts/test-notification';
import { applicationEventSchema } from '../../contracts/webhook-event';

const guide = readFileSync(`${__dirname}/../../docs/partner-guide.md`, 'utf8');

/** The first block of this language that holds this text. */
function block(language: string, holding: string): string {
  const blocks = [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  return blocks.map(([, code = '']) => code).find((code) => code.includes(holding)) ?? '';
}

test('the answer that the guide shows fits the contract', () => {
  const answer: unknown = JSON.parse(block('json', 'notification_id'));
  expect(testNotificationResponseSchema.strict().parse(answer)).toEqual(answer);
});

test('the event that the guide shows fits the contract', () => {
  const event: unknown = JSON.parse(block('json', '"sequence"'));
  expect(applicationEventSchema.strict().parse(event)).toEqual(event);
});
