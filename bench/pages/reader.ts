import { Agent, request } from 'undici';
import { monotonicMs } from '../delivery/monotonic';
import { pause } from '../delivery/rounds';

export interface Reading {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly clients: number;
  /** From the beginning of one page of a client to that of its next; 0: as fast as they come. */
  readonly everyMs: number;
}

/** Pages of a hundred, from the newest to the oldest and again, by each client until then. @returns milliseconds of each page. */
export async function pageThrough(reading: Reading, until: Promise<unknown>): Promise<number[]> {
  const { port, headers, clients, everyMs } = reading;
  const dispatcher = new Agent({ connections: clients });
  const times: number[] = [];
  let over = false;
  const ended = until.finally(() => (over = true));

  async function client(nth: number): Promise<void> {
    await pause((everyMs * nth) / clients);
    for (let cursor: string | null = null; !over;) {
      const startedAt = monotonicMs();
      const query = cursor === null ? '' : `&cursor=${cursor}`;
      const answer = await request(`http://127.0.0.1:${port}/v1/notifications?limit=100${query}`, {
        headers,
        dispatcher,
      });
      const body = (await answer.body.json()) as {
        data: { notifications: unknown[]; next_cursor: string | null };
      };
      times.push(monotonicMs() - startedAt);
      if (answer.statusCode !== 200) throw new Error(`a page was answered ${answer.statusCode}`);
      cursor = body.data.next_cursor;
      if (everyMs > 0) await pause(Math.max(0, startedAt + everyMs - monotonicMs()));
    }
  }

  await Promise.all([ended, ...Array.from({ length: clients }, (_, nth) => client(nth))]);
  await dispatcher.close();
  return times;
}
