import { createProgress } from '../../dev/stack/progress';
import { nowAndThen } from '../../dev/stack/progress';

/** What stands on a terminal after all that was written. */
function screen(text: string): string[] {
  const lines = [''];
  for (const piece of text.split(/(\n|\r\u001B\[K)/)) {
    if (piece === '\n') lines.push('');
    else if (piece.startsWith('\r')) lines[lines.length - 1] = '';
    else lines[lines.length - 1] += piece;
  }
  return lines;
}

async function shown(redraws: boolean): Promise<{ text: string; during: string[] }> {
  let text = '';
  let during: string[] = [];
  const progress = createProgress((piece) => (text += piece), 2, redraws);
  await progress.step('Postgres', async () => undefined);
  await progress.step('Temporal', async () => {
    progress.note('building');
    for (let count = 1; count <= 3; count += 1) progress.note(`${count} of 3 packages`, true);
    during = screen(text);
    progress.note('built');
  });
  return { text, during };
}

test('on a terminal a moving figure is one line, gone when the step is over', async () => {
  const { text, during } = await shown(true);
  expect(during.slice(1)).toEqual(['[2/2] Temporal ...', '      building', '      3 of 3 packages']);
  expect(screen(text).slice(1)).toEqual([
    '[2/2] Temporal ...',
    '      building',
    '      built',
    expect.stringMatching(/^\[2\/2\] Temporal: \d\.\d s$/),
    '',
  ]);
});

test('elsewhere it is a line now and then, and nothing is drawn again', async () => {
  const { text } = await shown(false);
  expect(text).not.toMatch(/\r|\u001B|packages/);

  const said: string[] = [];
  const clock = jest.spyOn(performance, 'now');
  clock.mockReturnValue(0);
  const say = nowAndThen((line) => said.push(line));
  for (let second = 1; second <= 40; second += 1) {
    clock.mockReturnValue(second * 1_000);
    say(`${second} s`, true);
  }
  say('built');
  clock.mockRestore();
  expect(said).toEqual(['15 s', '30 s', 'built']);
});
