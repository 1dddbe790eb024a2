import { Agent, request } from 'undici';
import type { IssuedCertificate } from '../../runtime/certificates/issue';
import { ADDRESSES, TWINS, type MachineName } from './network';

interface Member {
  readonly name: MachineName;
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
}

export type PatroniView = ReturnType<typeof viewPatroni>;

/** What Patroni knows of its members, by its REST interface. */
export function viewPatroni(authority: string, { cert, key }: IssuedCertificate) {
  const dispatcher = new Agent({
    connect: { ca: authority, cert, key, timeout: 2_000 },
    keepAliveTimeout: 1,
  });
  const ask = async (name: MachineName, path: string) => {
    const url = `https://${ADDRESSES[name]}:8008${path}`;
    const answer = await request(url, { dispatcher, headersTimeout: 2_000, bodyTimeout: 2_000 });
    return answer.body.text();
  };
  const members = async (): Promise<readonly Member[]> => {
    for (const name of TWINS) {
      try {
        return (JSON.parse(await ask(name, '/cluster')) as { members: Member[] }).members;
      } catch {
        // The other one may answer.
      }
    }
    return [];
  };
  return {
    /** As any machine that answers sees them; empty when none does. */
    members,
    leader: async () => (await members()).find(({ role }) => role === 'leader')?.name,
    /** Whether one leads and the other has all that is acknowledged. */
    async isWhole() {
      const all = await members();
      const [leads, follows] = ['leader', 'sync_standby'].map((role) =>
        all.find((one) => one.role === role && ['running', 'streaming'].includes(one.state)),
      );
      // One that is being rewound runs for a moment, on the timeline from before it lost the lead.
      return leads !== undefined && leads.timeline === follows?.timeline;
    },
    metrics: (name: MachineName) => ask(name, '/metrics'),
  };
}
