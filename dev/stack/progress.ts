import type { StackInfo } from './types';

/** Numbered steps, `[1/5] Postgres ... 1.2 s`, and between them lines about what takes long. */
export function createProgress(write: (text: string) => void, steps: number) {
  let number = 0;
  let onStepLine = false;
  const endLine = () => {
    if (onStepLine) write('\n');
    onStepLine = false;
  };
  return {
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      number += 1;
      const startedAt = performance.now();
      const label = `[${number}/${steps}] ${name}`;
      write(`${label} ...`);
      onStepLine = true;
      try {
        const result = await task();
        const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
        write(onStepLine ? ` ${took}\n` : `${label}: ${took}\n`);
        onStepLine = false;
        return result;
      } catch (error) {
        endLine();
        throw error;
      }
    },
    note(text: string): void {
      endLine();
      write(`      ${text}\n`);
    },
  };
}

/** What to open first, then the rest: the `export` line is what the commands of README and guide use. */
export function welcome(info: StackInfo): string {
  const { apiUrl, apiKeys, partnerId } = info;
  const caFile = shellWord(info.caFile);
  return `
Open ${info.shopUrl} in a browser: a shop with finance offers. (It warns until it trusts ${info.caFile}.)

  Developer  ${info.shopUrl}/developer  the shop's calls and webhooks
  Docs       ${apiUrl}/docs  guide and API reference
  Internal   ${info.internalUrl}
  Partner    ${partnerId}, with merchants ${info.merchants.map(({ id }) => id).join(', ')}
  Live key   ${apiKeys.live}
  Sandbox    export BASE_URL=${apiUrl} API_KEY=${apiKeys.test} CURL_CA_BUNDLE=${caFile} NODE_EXTRA_CA_CERTS=${caFile}

A line below says when webhooks work. In another terminal \`npm run demo\` walks three credit applications. Ctrl-C stops everything.
`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
