import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Project } from '../containers/project';
import { Cluster } from '../kubernetes/cluster';

describe.each([
  ['containers', Project.commands],
  ['kubernetes', Cluster.commands],
])('test:%s', (folder, commands) => {
  // The program itself takes a quarter of an hour to say so.
  test('has every command of its pages, in their words', () => {
    const here = join(__dirname, '..', folder);
    const text = readdirSync(here)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(here, name), 'utf8').replaceAll(String.raw`\'`, "'"))
      .join('\n');
    const quoted = (command: string) => ["'", '"', '`'].some((mark) => text.includes(mark + command + mark));
    expect(commands.length).toBeGreaterThan(20);
    expect(commands.filter((command) => !quoted(command))).toEqual([]);
  });
});
