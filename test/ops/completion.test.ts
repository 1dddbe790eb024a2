import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needs } from '../support/needs';
import { useOps } from './run';

const ops = useOps();
const folder = mkdtempSync(join(tmpdir(), 'completion-'));
async function script(shell: string): Promise<string> {
  const file = join(folder, shell);
  writeFileSync(file, await ops.text('completion', shell));
  return file;
}
const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { encoding: 'utf8', timeout: 30_000, env: { ...process.env, TERM: 'vt100' } });

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['ops pro', ['products']],
  ['ops partners e', ['enable', 'enable-recovery']],
  ['ops webhooks secrets r', ['rotate']],
  ['ops keys create --environment ', ['sandbox', 'live']],
  ['ops keys create --environment live --par', ['--partner']],
  ['ops keys create --wi', ['--wide']],
  ['ops completion ba', ['bash']],
];

test.each(CASES)('bash: %s', async (line, words) => {
  const text = `source ${await script('bash')}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ops ops "\${!#}"; echo "\${COMPREPLY[@]}"`;
  expect(run('bash', '-c', text, 'bash', ...line.split(' ')).trim()).toBe(words.join(' '));
});

needs('fish')('fish', () => {
  test.each(CASES)('%s', async (line, words) => {
    const text = `source ${await script('fish')}; complete -C ${JSON.stringify(line)}`;
    expect(run('fish', '-N', '-c', text).trim().split('\n').toSorted()).toEqual(words.toSorted());
  });
});

/** Types into an interactive shell, and reads until it has completed. */
const TYPED = `zmodload zsh/zpty; zpty -b p zsh -f -i
read_until() { for i in {1..200}; do zpty -r -t p part && got+=$part; [[ $got == *$1* ]] && return; sleep 0.05; done; }
zpty -w p "PS1='> '; source $1; echo REA''DY"; read_until READY
zpty -w -n p $2$'\\t'; read_until $3; print -r -- $got; zpty -d p`;

needs('zsh')('zsh', () => {
  test.each(CASES.filter(([, words]) => words.length === 1))('%s', async (line, [word = '']) => {
    const shown = run('zsh', '-f', '-c', TYPED, 'zsh', await script('zsh'), line, word);
    expect(shown).toContain(`${line.slice(0, line.lastIndexOf(' '))} ${word}`);
  });
});
