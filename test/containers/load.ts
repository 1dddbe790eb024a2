import { Agent, request } from 'undici';

export interface LoadOptions {
  readonly url: string;
  readonly ca: string;
  readonly servername: string;
  readonly key: string;
  readonly body: string;
  /** Each sends its next quote once the last one is answered. Every second one opens a connection for each. */
  readonly clients: number;
}

export interface Load {
  /** Answers so far, and what went wrong: another status, or no answer. */
  readonly answered: () => number;
  /** Ends it. @returns ids of quotes answered with 200, and every request that was not. */
  stop(): Promise<{ readonly ids: readonly string[]; readonly lost: readonly string[] }>;
}

/** Quotes, as partners send them: over connections that are kept, and over new ones. Nothing is ever tried again. */
export function startLoad(options: LoadOptions): Load {
  const ids: string[] = [];
  const lost: string[] = [];
  let stopping = false;
  const agents: Agent[] = [];

  async function one(agent: Agent, reset: boolean): Promise<void> {
    const startedAt = new Date().toISOString();
    try {
      const answer = await request(`${options.url}/v1/finance-quote`, {
        method: 'POST',
        dispatcher: agent,
        reset,
        headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json' },
        body: options.body,
      });
      const text = await answer.body.text();
      if (answer.statusCode === 200)
        ids.push((JSON.parse(text) as { data: { service_quote_id: string } }).data.service_quote_id);
      else lost.push(`${startedAt}: ${answer.statusCode} ${text}`);
    } catch (error) {
      lost.push(`${startedAt}: ${String(error)}`);
    }
  }
  const clients = Array.from({ length: options.clients }, async (_, nth) => {
    const agent = new Agent({ connect: { ca: options.ca, servername: options.servername }, connections: 1 });
    agents.push(agent);
    while (!stopping) {
      await one(agent, nth % 2 === 1);
      // Two cores serve everything here: enough is under way without filling them.
      await new Promise((resolve) => setTimeout(resolve, 80));
    }
  });
  return {
    answered: () => ids.length + lost.length,
    async stop() {
      stopping = true;
      await Promise.all(clients);
      await Promise.all(agents.map((agent) => agent.close()));
      return { ids, lost };
    },
  };
}
