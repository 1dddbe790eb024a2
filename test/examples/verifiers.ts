import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { needs, pythonWithCryptography, type Part } from '../support/needs';

export const EXAMPLES = join(__dirname, '../../examples/verify-webhook');

/** How to run the verifier of a language; `build` first, in a folder of its own that holds a copy of the examples. */
interface Language {
  readonly folder: string;
  readonly needs: readonly Part[];
  /** What it needs besides for them. */
  readonly forPublicKeys?: Part;
  readonly build?: readonly string[];
  readonly run: readonly string[];
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  Node: { folder: 'node', needs: [], run: [process.execPath, 'try.mjs'] },
  Python: {
    folder: 'python',
    needs: ['Python'],
    forPublicKeys: 'cryptography for Python',
    run: ['python3', 'try_webhook.py'],
  },
  PHP: { folder: 'php', needs: ['PHP'], run: ['php', 'try.php'] },
  Java: {
    folder: 'java',
    needs: ['Java'],
    build: ['javac', 'TryWebhook.java'],
    run: ['java', '-XX:TieredStopAtLevel=1', 'TryWebhook'],
  },
  Go: { folder: 'go', needs: ['Go'], build: ['go', 'build', '-o', 'try-go', './try'], run: ['./try-go'] },
};

const FORMS = ['Service-Signature', 'Standard Webhooks', 'public keys'] as const;
export type Form = (typeof FORMS)[number];

/**
 * What a verifier is given: what arrived, the secrets or public keys that the receiver has (a text: of the variable as it is), and its
 * clock in Unix seconds.
 */
export interface Case {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly known: readonly string[] | string | undefined;
  readonly form: Form;
  readonly now: number;
}

/** Describes what is tested of the verifiers: in each language that the machine has, each form of the signature. */
export function describeEach(folder: string, testsOf: (language: string, form: Form) => void): void {
  for (const [language, program] of Object.entries(LANGUAGES))
    needs(...program.needs)(language, () => {
      beforeAll(() => buildVerifier(folder, program), 120_000);
      for (const form of FORMS) {
        const more = form === 'public keys' && program.forPublicKeys !== undefined;
        (more ? needs(program.forPublicKeys) : describe)(form, () => testsOf(language, form));
      }
    });
}

/** Copies an example, and compiles it where it needs that. @throws with what the compiler said. */
async function buildVerifier(folder: string, { folder: own, build }: Language): Promise<void> {
  cpSync(join(EXAMPLES, own), join(folder, own), { recursive: true });
  if (build === undefined) return;
  const { code, output } = await run(join(folder, own), build, {}, '');
  if (code !== 0) throw new Error(`${build.join(' ')}: ${output}`);
}

/** @returns `verified` or `refused`. @throws when the verifier threw, or its exit code does not agree. */
export async function verifyIn(folder: string, language: string, given: Case): Promise<string> {
  const { code, output } = await tryIn(folder, language, given);
  const said = output.trim();
  if (code !== (said === 'verified' ? 0 : 1)) throw new Error(`${language} ended with ${code}: ${output}`);
  if (said !== 'verified' && said !== 'refused') throw new Error(`${language}: ${output}`);
  return said;
}

/** @returns how the program ended, and all it printed. */
export async function tryIn(folder: string, language: string, given: Case): Promise<Ended> {
  const { headers, body, known, form, now } = given;
  const header = (name: string) => String(headers[name]);
  const signature: Record<string, string> =
    form === 'Service-Signature'
      ? { SERVICE_SIGNATURE: header('service-signature') }
      : {
          WEBHOOK_ID: header('webhook-id'),
          WEBHOOK_TIMESTAMP: header('webhook-timestamp'),
          WEBHOOK_SIGNATURE: header('webhook-signature'),
        };
  const program = LANGUAGES[language];
  if (program === undefined) throw new Error(`no verifier for ${language}`);
  const text = typeof known === 'object' ? known.join(' ') : known;
  const keys = text === undefined ? {} : { [form === 'public keys' ? 'PUBLIC_KEYS' : 'SECRETS']: text };
  const environment = { ...signature, ...keys, NOW: String(now) };
  const command = commandFor(program, form);
  return run(join(folder, program.folder), command, environment, body);
}

interface Ended {
  readonly code: number | string;
  readonly output: string;
}

/** With public keys Python is the one that has the package. */
function commandFor({ run, forPublicKeys }: Language, form: Form): readonly string[] {
  if (form !== 'public keys' || forPublicKeys === undefined) return run;
  return [pythonWithCryptography() ?? '', ...run.slice(1)];
}

async function run(
  cwd: string,
  [command = '', ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
  input: string,
): Promise<Ended> {
  const running = promisify(execFile)(command, args, { cwd, env: { ...process.env, ...environment } });
  // A verifier may refuse without reading.
  running.child.stdin?.on('error', () => undefined).end(input);
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
  );
}
