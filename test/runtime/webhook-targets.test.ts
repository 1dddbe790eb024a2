import { readConfig } from '../../runtime/config/config';
import { targetRules } from '../../runtime/webhook-targets';

const rules = (WEBHOOK_LOCAL_TARGETS: string, ENVIRONMENT = 'development') =>
  targetRules(readConfig({ WEBHOOK_LOCAL_TARGETS, ENVIRONMENT }));

test('receivers on this machine are allowed by name and port, and nothing else private', () => {
  expect(rules('localhost:8450,Hooks.partner.example:9443')).toEqual({
    allowedCidrs: ['127.0.0.1/32'],
    allowedPorts: [8450, 9443],
    hosts: new Map([
      ['localhost', ['127.0.0.1']],
      ['hooks.partner.example', ['127.0.0.1']],
    ]),
  });
});

test.each(['', 'production', 'development'])(
  'without any, only public addresses and port 443 (%s)',
  (environment) => {
    expect(targetRules(readConfig(environment === '' ? {} : { ENVIRONMENT: environment }))).toEqual({
      allowedCidrs: [],
      allowedPorts: [],
      hosts: new Map(),
    });
  },
);

test('production refuses them', () => {
  expect(() => rules('localhost:8450', 'production')).toThrow(
    'WEBHOOK_LOCAL_TARGETS cannot be used in production.',
  );
});

test.each([
  'localhost',
  '8450',
  'localhost:',
  ':8450',
  'localhost:84500',
  'localhost:0',
  'a b:1',
  'localhost=127.0.0.1',
])('%s is refused at the start, with the name of the setting', (text) => {
  expect(() => rules(text)).toThrow(/WEBHOOK_LOCAL_TARGETS/);
});
