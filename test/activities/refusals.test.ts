import { watchRefusals } from '../../activities/refusals';

const OVERFLOW = Object.assign(new Error('integer out of range'), { code: '22003' });

function watch() {
  const onRefused = jest.fn();
  return { ...watchRefusals(onRefused), onRefused };
}

test('a row that is refused three times while others are opened is to blame', () => {
  const { isPoison, opened, onRefused } = watch();
  expect(isPoison('a', OVERFLOW)).toBe(false);
  opened('b');
  expect([isPoison('a', OVERFLOW), isPoison('a', OVERFLOW)]).toEqual([false, true]);
  expect(onRefused).toHaveBeenCalledTimes(3);
});

test('while none is opened the fault is ours, and each is tried again', () => {
  const { isPoison, opened } = watch();
  opened('b');
  for (let nth = 0; nth < 9; nth += 1)
    for (const id of ['a', 'b', 'c']) expect(isPoison(id, OVERFLOW)).toBe(false);
});

test('one that was opened after all begins anew', () => {
  const { isPoison, opened } = watch();
  for (const nth of [1, 2]) expect([nth, isPoison('a', OVERFLOW)]).toEqual([nth, false]);
  opened('a');
  opened('b');
  expect(isPoison('a', OVERFLOW)).toBe(false);
});

test('a CHECK counts as well; an outage, a lock and a missing right do not', () => {
  const { isPoison, opened, onRefused } = watch();
  for (const code of ['57P01', '55P03', '42501', 'ECONNREFUSED', undefined])
    expect(isPoison('a', Object.assign(new Error('x'), { code }))).toBe(false);
  expect(onRefused).not.toHaveBeenCalled();
  isPoison('a', Object.assign(new Error('x'), { code: '23514' }));
  opened('b');
  expect(onRefused).toHaveBeenCalledTimes(1);
});
