import { z } from 'zod';
import { storeSettings } from '../../runtime/config/store-settings';

test.each([
  [
    'postgres://u:p@a,b/d?target_session_attrs=standby',
    /^target_session_attrs is one of read-write, primary, any$/,
  ],
  ['postgres://u:p@a,,b/d', /^not a list of hosts$/],
  ['postgres://u:p@a:x,b/d', /^not a list of hosts$/],
  ['postgres://u:p@a,b/d?sslmode=full', /^sslmode is one of/],
  ['mysql://u:p@a/d', /^it begins with postgres:\/\/$/],
  ['nothing', /^not a URL$/],
])('%s is no setting', (url, why) => {
  const { error } = z.object(storeSettings).safeParse({ DATABASE_URL: url });
  expect(error?.issues).toEqual([
    expect.objectContaining({ path: ['DATABASE_URL'], message: expect.stringMatching(why) }),
  ]);
});

test.each(['postgres://u:p@a,b:5433,[::1]:5434/d', 'postgresql://a,b/d?target_session_attrs=read-write'])(
  '%s is a setting',
  (url) => {
    expect(z.object(storeSettings).safeParse({ DATABASE_URL: url }).success).toBe(true);
  },
);
