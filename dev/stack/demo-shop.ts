import { readFileSync } from 'node:fs';
import { startShop, type RunningShop } from '../shop';
import type { RunningReceiver } from '../receiver';
import type { DemoData, DemoOutcome, DevelopmentTls, StackOptions } from './types';

const ENDINGS: Readonly<Record<DemoOutcome, string>> = {
  arrived: 'All events arrived, verified and in order.',
  missing: 'Not everything arrived verified and in order.',
  elsewhere: 'The events went to the endpoint that is registered, which is not the demo’s receiver.',
};

/** The demo shop beside the services of a stack. */
export function startDemoShop(
  options: Pick<StackOptions, 'ports' | 'runDemo'>,
  parts: {
    readonly apiUrl: string;
    readonly tls: DevelopmentTls;
    readonly demo: DemoData;
    readonly receiver: RunningReceiver;
    /** Whether stack.json is written: the demo reads it. */
    readonly isUp: () => boolean;
  },
): Promise<RunningShop> {
  const { tls, demo, receiver } = parts;
  return startShop({
    port: options.ports.shop,
    tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
    partner: {
      apiUrl: parts.apiUrl,
      ca: readFileSync(tls.caFile, 'utf8'),
      partnerId: demo.partnerId,
      apiKey: demo.apiKeys.test,
    },
    merchants: demo.merchants,
    partnerPage: receiver.url,
    deliveries: () => receiver.deliveries(),
    runDemoApplication: async () => {
      if (!parts.isUp() || options.runDemo === undefined) return 'The stack is still starting.';
      return ENDINGS[await options.runDemo()];
    },
  });
}
