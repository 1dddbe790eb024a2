import { warnOfOldNode } from '../../runtime/node-release';

test.each([
  ['20.20.2', 1],
  ['21.7.3', 1],
  ['22.23.0', 0],
  ['24.21.0', 0],
  ['26.0.0', 0],
])('a process on Node %s logs %i warnings that it is out of support', (version, count) => {
  const lines: unknown[] = [];
  warnOfOldNode({ warn: (...line: unknown[]) => void lines.push(line) }, version);
  expect(lines).toEqual(
    Array.from({ length: count }, () => [{ node: version }, expect.stringContaining('use Node 24')]),
  );
});
