import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { findGenerator } from './generators';
import { testClient } from './scene';

fileNeeds('Python', 'Python generators');

testClient({
  name: 'openapi-python-client',
  // It makes nothing of webhooks.
  readsEvents: false,
  async make({ folder, document, run }) {
    const bin = join(await findGenerator('Python generators'), 'bin');
    const python = join(bin, 'python');
    const generate = [python, '-m', 'openapi_python_client', 'generate', '--path', document];
    const options = [
      '--output-path',
      'partner_finance_quote_service_client',
      '--fail-on-warning',
      '--meta',
      'none',
    ];
    // It formats what it makes with ruff, from the PATH.
    await run('sh', ['-c', 'PATH="$0:$PATH" exec "$@"', bin, ...generate, ...options]);
    return ['env', `PYTHONPATH=${folder}`, python, join(folder, 'main.py')];
  },
});
