import { readFileSync } from 'node:fs';
import { startShop, type RunningShop } from '../shop';
import type { RunningReceiver } from '../receiver';
import type { DevelopmentTls } from './certificates';
import type { DemoData, StackInfo, StackOptions } from './types';

/** The demo shop beside the services of a stack. `info` is asked for when the demo application is started. */
export function startDemoShop(
  options: Pick<StackOptions, 'shopPort' | 'runDemoApplication'>,
  parts: {
    readonly apiUrl: string;
    readonly tls: DevelopmentTls;
    readonly demo: DemoData;
    readonly receiver: RunningReceiver;
    readonly info: () => StackInfo | undefined;
  },
): Promise<RunningShop> {
  const { tls, demo, receiver } = parts;
  return startShop({
    port: options.shopPort,
    tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
    partner: {
      apiUrl: parts.apiUrl,
      ca: readFileSync(tls.caFile, 'utf8'),
      partnerId: demo.partnerId,
      apiKey: demo.apiKeys.test,
    },
    merchants: demo.merchants,
    deliveries: () => receiver.deliveries(),
    runDemoApplication: async () => {
      const info = parts.info();
      if (info === undefined || options.runDemoApplication === undefined)
        return 'The stack is still starting.';
      return options.runDemoApplication(info);
    },
  });
}
