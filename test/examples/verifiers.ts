import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import type { Part } from '../support/needs';

const EXAMPLES = join(__dirname, '../../examples/verify-webhook');

/** How to run the verifier of a language; `build` first, in a folder of its own that holds a copy of the examples. */
interface Language {
  /** Its folder. */
  readonly folder: string;
  readonly needs: readonly Part[];
  readonly build?: readonly string[];
  readonly run: readonly string[];
}

export const LANGUAGES: Readonly<Record<string, Language>> = {
  Node: { folder: 'node', needs: [], run: [process.execPath, 'try.mjs'] },
  Python: { folder: 'python', needs: ['Python'], run: ['python3', 'try_webhook.py'] },
  PHP: { folder: 'php', needs: ['PHP'], run: ['php', 'try.php'] },
  Java: {
    folder: 'java',
    needs: ['Java'],
    build: ['javac', 'TryWebhook.java'],
    run: ['java', '-XX:TieredStopAtLevel=1', 'TryWebhook'],
  },
  Go: { folder: 'go', needs: ['Go'], build: ['go', 'build', '-o', 'try-go', '.'], run: ['./try-go'] },
};

/** What a verifier is given: what arrived, the secrets that the receiver holds, and its clock in Unix seconds. */
export interface Case {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly secrets: readonly string[];
  readonly form: 'Service-Signature' | 'Standard Webhooks';
  readonly now: number;
}

/** Copies an example, and compiles it where it needs that. @throws with what the compiler said. */
export async function buildVerifier(folder: string, { folder: own, build }: Language): Promise<void> {
  cpSync(join(EXAMPLES, own), join(folder, own), { recursive: true });
  if (build === undefined) return;
  const { code, output } = await run(join(folder, own), build, {}, '');
  if (code !== 0) throw new Error(`${build.join(' ')}: ${output}`);
}

/** @returns what the verifier printed: `verified` or `refused`. @throws when its exit code does not agree. */
export async function verifyIn(folder: string, language: string, given: Case): Promise<string> {
  const { headers, body, secrets, form, now } = given;
  const text = (name: string) => String(headers[name]);
  const signature: Record<string, string> =
    form === 'Service-Signature'
      ? { SERVICE_SIGNATURE: text('service-signature') }
      : {
          WEBHOOK_ID: text('webhook-id'),
          WEBHOOK_TIMESTAMP: text('webhook-timestamp'),
          WEBHOOK_SIGNATURE: text('webhook-signature'),
        };
  const known = LANGUAGES[language];
  if (known === undefined) throw new Error(`no verifier for ${language}`);
  const environment = { ...signature, SECRETS: secrets.join(' '), NOW: String(now) };
  const { code, output } = await run(join(folder, known.folder), known.run, environment, body);
  const said = output.trim();
  if (code !== (said === 'verified' ? 0 : 1)) throw new Error(`${language} ended with ${code}: ${output}`);
  return said;
}

function run(
  folder: string,
  [command = '', ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
  input: string,
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, { cwd: folder, env: { ...process.env, ...environment } });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  // A verifier may refuse without reading.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
