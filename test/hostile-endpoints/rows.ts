import type { TlsOptions } from 'node:tls';
import { certificateFor, startRawReceiver, startReceiver, closeLater } from '../outbound/partner';
import { testTemporal, type TestTemporal } from '../support/temporal';
import { HERE, openScene, type HostilePartner, type Scene, type Seen } from './scene';

type Listener = Parameters<typeof startReceiver>[0];
type OnData = Parameters<typeof startRawReceiver>[0];

const wildcard = certificateFor('*.partner.test');

/** An HTTPS server of a partner, certified for every name of the scene. */
export async function receiver(listener: Listener, tls: TlsOptions = {}) {
  return closeLater(await startReceiver(listener, { address: HERE, tls: { ...(await wildcard), ...tls } }));
}

/** The same, byte for byte. */
export async function rawReceiver(onData: OnData, tls: TlsOptions = {}) {
  return closeLater(await startRawReceiver(onData, { address: HERE, tls: { ...(await wildcard), ...tls } }));
}

/** Declares tests of a file's rows. Their deliveries all begin at once; each test looks at its own. */
export interface Rows {
  readonly scene: () => Scene;
  readonly temporal: TestTemporal;
  /**
   * One row. @param begin registers an endpoint; a test notification is then sent to it, unless it sends by itself and
   * returns the id.
   */
  readonly row: (
    name: string,
    begin: (partner: HostilePartner, scene: Scene) => Promise<string | void>,
    look: (seen: Seen, scene: Scene) => void | Promise<void>,
  ) => void;
}

/** Call it at the top of a file. */
export function hostileRows(): Rows {
  const temporal = testTemporal();
  const begins: ((scene: Scene) => Promise<string>)[] = [];
  const ids: string[] = [];
  let opened: Scene | undefined;
  const scene = () => {
    if (opened === undefined) throw new Error('the scene is there from beforeAll on');
    return opened;
  };
  beforeAll(async () => {
    const current = await openScene(temporal);
    opened = current;
    ids.push(...(await Promise.all(begins.map((begin) => begin(current)))));
  }, 120_000);
  afterAll(() => opened?.close());
  return {
    scene,
    temporal,
    row(name, begin, look) {
      const at =
        begins.push(async (current) => {
          const partner = await current.partner();
          return (await begin(partner, current)) ?? (await partner.send()).notificationId;
        }) - 1;
      test(name, async () => look(await scene().ended(ids[at] ?? ''), scene()), 60_000);
    },
  };
}
