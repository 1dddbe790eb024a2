import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Does what the Dockerfile does, without an engine: the built code, and the dependencies by the Dockerfile's own command.
 * @returns the folder that stands for /app.
 */
export function stageImage(root: string, directory: string): string {
  const app = join(directory, 'app');
  const [, install] =
    /^FROM base AS dependencies\nRUN (.+)$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8')) ?? [];
  if (install === undefined)
    throw new Error('the stage `dependencies` of the Dockerfile has another form now');
  mkdirSync(join(app, 'clients/typescript'), { recursive: true });
  for (const path of ['package.json', 'package-lock.json', '.npmrc', 'clients/typescript/package.json'])
    cpSync(join(root, path), join(app, path));
  execFileSync('sh', ['-c', install], { cwd: app, stdio: 'inherit' });
  execFileSync('npm', ['run', '-s', 'build'], { cwd: root, stdio: 'inherit' });
  cpSync(join(root, 'dist'), join(app, 'dist'), { recursive: true });
  return app;
}
