import { setTimeout as sleep } from 'node:timers/promises';
import { RECEIVERS, type Ending, type Receiver, type ReceiverName } from '../../dev/receivers';
import { PROTOCOL_REASONS } from '../../domain/delivery-outcome';
import { RECEIVER_NAME, startWebhookReceiver } from '../support/webhook-receiver';
import { closeAll, closeLater, post, testSender } from './partner';

afterEach(closeAll);

/** A connection rests for 250 ms after its first answer. */
const RESTED_MS = 300;

/** A receiver of the table, and a sender to it. */
async function receiving(answer: Receiver['answer']) {
  const connections = new Set<number | undefined>();
  const answered: { eventId: string; status: number | null }[] = [];
  const receiver = closeLater(
    await startWebhookReceiver((_nth, { eventId }, wire) => {
      connections.add(wire.socket.remotePort);
      answered.push({ eventId, status: answer(wire) });
      return null;
    }),
  );
  const sender = await testSender({
    ports: [receiver.port],
    hosts: new Map([[RECEIVER_NAME, ['127.0.0.1']]]),
    ca: receiver.ca,
    // Handshakes are work, for a busy machine, and so are a hundred bytes one by one.
    timeouts: { connectMs: 30_000, headersMs: 30_000, bodyMs: 1_000, totalMs: 60_000 },
  });
  let surplus = 0;
  const send = async (eventId: string, endpointId = 'whe_1') => {
    const { outcome, detail } = await sender.send({
      ...post(receiver.url),
      endpointId,
      headers: { 'webhook-id': eventId },
      onSurplus: () => (surplus += 1),
    });
    return { outcome, detail };
  };
  return { send, answered, connections, surplus: () => surplus };
}

function endingOf({ outcome }: Awaited<ReturnType<Awaited<ReturnType<typeof receiving>>['send']>>): Ending {
  if (outcome.httpStatus !== null) return outcome.httpStatus;
  if (outcome.kind !== 'failed') throw new Error(`${outcome.kind} without a status`);
  return outcome.failure === 'protocol' ? `protocol ${outcome.reason}` : (outcome.failure as Ending);
}

/** Receivers tried at once: more handshakes keep a busy machine longer than the time to connect. */
const AT_ONCE = 8;

async function tryReceiver({ answer, surplus }: Receiver) {
  const { send, answered, connections, surplus: seen } = await receiving(answer);
  const first = await send('evt_1');
  await sleep(RESTED_MS);
  const second = await send('evt_2');
  if (surplus) await sleep(RESTED_MS);
  return { attempts: [first, second], answered, connections: connections.size, surplus: seen() > 0 };
}

test('each receiver of the table is given its due', async () => {
  const names = Object.keys(RECEIVERS) as ReceiverName[];
  const tried: Awaited<ReturnType<typeof tryReceiver>>[] = [];
  for (let from = 0; from < names.length; from += AT_ONCE)
    tried.push(
      ...(await Promise.all(names.slice(from, from + AT_ONCE).map((name) => tryReceiver(RECEIVERS[name])))),
    );
  const seen = tried.map(({ attempts, connections, surplus }, at) => ({
    name: names[at],
    ends: attempts.map(endingOf),
    connections,
    ...(surplus && { surplus }),
  }));
  expect(seen).toEqual(
    names.map((name) => {
      const { ends, connections, surplus }: Receiver = RECEIVERS[name];
      return { name, ends, connections, ...(surplus && { surplus }) };
    }),
  );
  for (const { attempts, answered } of tried)
    for (const [at, { outcome, detail }] of attempts.entries()) {
      if (outcome.kind === 'failed' && outcome.reason !== undefined)
        expect(detail).toContain(PROTOCOL_REASONS[outcome.reason]);
      // Nothing is delivered but by an answer to it.
      const own = answered.filter(({ eventId }) => eventId === `evt_${at + 1}`).map(({ status }) => status);
      if (outcome.kind === 'delivered') expect(own).toContain(outcome.httpStatus);
    }
}, 180_000);
