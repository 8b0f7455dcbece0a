import { expect, test } from 'vitest'
import { entryIdentity } from '#identity/identity.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { entryKey, readDevices, writeDevices } from './device-cookie.ts'

const start = Date.UTC(2030, 0, 1)
const box = fakeSecretBox('login')
const at = (time: number) => ({ box, clock: () => new Date(time) })
const carrying = (line: string) => ({ headers: { cookie: line.split(';')[0] } })
const keys = ['a', 'b', 'c', 'd', 'e'].map((id) => entryKey(entryIdentity('people', id)))

test('a browser is known for the users who last logged in with it, each time as another device', async () => {
  let line = ''
  for (const key of [...keys, ...keys.slice(1, 2)]) {
    const known = line === '' ? [] : await readDevices(carrying(line), { secure: true }, at(start))
    line = await writeDevices(known, key, { secure: true }, at(start))
  }
  expect(line).toMatch(/^__Host-gatehouse-device=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000; Secure$/)
  expect(line.length).toBeLessThan(1500)
  const known = await readDevices(carrying(line), { secure: true }, at(start))
  expect(known.map(({ entry }) => keys.indexOf(entry))).toEqual([1, 4, 3, 2])
  const again = await writeDevices(known, keys[1] ?? '', { secure: true }, at(start))
  const [renewed] = await readDevices(carrying(again), { secure: true }, at(start))
  expect([renewed?.entry, renewed?.id === known[0]?.id]).toEqual([keys[1], false])
})

test('it is forgotten after 90 days', async () => {
  const line = await writeDevices([], keys[0] ?? '', { secure: false }, at(start))
  const days = (count: number) => readDevices(carrying(line), { secure: false }, at(start + count * 86_400_000))
  expect([(await days(89)).length, (await days(90)).length]).toEqual([1, 0])
})

test('a cookie that was not sealed here is ignored', async () => {
  const line = await writeDevices([], keys[0] ?? '', { secure: false }, at(start))
  const value = /=([^;]+)/.exec(line)?.[1] ?? ''
  const foreign = await writeDevices(
    [],
    keys[0] ?? '',
    { secure: false },
    { ...at(start), box: fakeSecretBox('login') },
  )
  for (const cookie of [
    `gatehouse-device=${value.slice(0, -2)}AA`,
    `gatehouse-device=${await box.seal({ devices: [] }, 'something else')}`,
    `gatehouse-device=${value}; gatehouse-device=${value}`,
    `__Host-gatehouse-device=${value}`,
    `gatehouse-device=${'x'.repeat(5000)}`,
    'gatehouse-device=',
    foreign,
  ]) {
    expect(await readDevices({ headers: { cookie } }, { secure: false }, at(start))).toEqual([])
  }
})
