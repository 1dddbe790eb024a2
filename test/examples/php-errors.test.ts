import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../dev/ports';
import { startProgram } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { EXAMPLES } from './verifiers';

/** PHP without php.ini, as Docker's image has it: `display_errors` is on. */
fileNeeds('PHP');

const guide = readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
const [, begin = ''] = /In PHP, begin with `([^`]+)`/.exec(guide) ?? [];

test('a receiver in PHP that ends with an error answers 500, so that the event comes again', async () => {
  const folder = runDirectory('php-errors');
  const verifier = JSON.stringify(join(EXAMPLES, 'php/verify-webhook.php'));
  const scripts = {
    'no-secret': `require ${verifier}; read_secrets(getenv('NOT_SET')); http_response_code(204);`,
    'no-database': `echo 'begun '; throw new Exception('no database');`,
    'too-long': 'set_time_limit(1); while (true) {}',
    stored: 'http_response_code(204);',
  };
  for (const [name, script] of Object.entries(scripts))
    writeFileSync(join(folder, `${name}.php`), `<?php\n${begin}\n${script}\n`);
  const port = await freePort();
  const php = startProgram(['php', '-n', '-S', `127.0.0.1:${port}`, '-t', folder], {});
  try {
    await until(() => /started/.test(php.output()), 'PHP');
    const answer = async (name: string) =>
      (await fetch(`http://127.0.0.1:${port}/${name}.php`, { method: 'POST', body: '{}' })).status;
    const answers: Record<string, number> = {};
    for (const name of Object.keys(scripts)) answers[name] = await answer(name);
    expect(answers).toEqual({ 'no-secret': 500, 'no-database': 500, 'too-long': 500, stored: 204 });
  } finally {
    await php.end('SIGTERM');
  }
});
