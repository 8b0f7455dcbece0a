import { expect, test } from 'vitest'
import { SecretSource } from '#config/context/secrets.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { SecretValues } from '#kernel/secret-values.ts'
import { AccessRefused } from '#protocols/kubernetes/api-failure.ts'
import { KubernetesSecrets } from './kubernetes-secrets.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function fixture() {
  const stored = new Map<string, { version: string; data: unknown }>()
  const asked: string[] = []
  const lines: unknown[] = []
  const log = { info: (...line: unknown[]) => void lines.push(line) } as unknown as Logger
  let isAway = false
  const objects = {
    async get(_resource: unknown, name: string) {
      asked.push(name)
      if (isAway) throw new GatewayError('TARGET_UNREACHABLE', 'away')
      if (name === 'forbidden') throw new AccessRefused('TARGET_FAILED', 'no')
      const found = stored.get(name)
      if (found === undefined) return undefined
      return { metadata: { name, uid: 'u', resourceVersion: found.version }, content: { data: found.data } }
    },
  }
  const secrets = new KubernetesSecrets(objects, 'ns', log)
  return { stored, asked, lines, secrets, goAway: () => (isAway = true) }
}

test('fetches requested Secrets once, and sees a change', async () => {
  const { stored, asked, secrets } = fixture()
  stored.set('db', { version: '1', data: { password: base64('first\n'), odd: 1 } })
  expect(secrets.lookUp('db', 'password')).toBeUndefined()
  expect([await secrets.fetchMissing(), await secrets.fetchMissing()]).toEqual([true, false])
  expect(new SecretSource('/nowhere', {}, new SecretValues(), secrets.lookUp).read('db', 'password')).toEqual({
    value: 'first',
  })
  expect(secrets.lookUp('db', 'odd')).toBeUndefined()
  expect(asked).toEqual(['db'])

  expect(await secrets.refresh()).toBe(false)
  stored.set('db', { version: '2', data: { password: base64('second') } })
  expect(await secrets.refresh()).toBe(true)
  expect(secrets.lookUp('db', 'password')).toBe('second')
  stored.delete('db')
  expect(await secrets.refresh()).toBe(true)
  expect(secrets.lookUp('db', 'password')).toBeUndefined()
})

test('a forbidden Secret counts as absent, and is reported once, by name', async () => {
  const { lines, secrets } = fixture()
  secrets.lookUp('forbidden', 'x')
  await secrets.fetchMissing()
  await secrets.refresh()
  expect(secrets.lookUp('forbidden', 'x')).toBeUndefined()
  expect(lines).toEqual([['a Secret may not be read and counts as absent', { name: 'forbidden' }]])
})

test('known Secrets stay while the API server is unavailable, and unknown ones fail', async () => {
  const { stored, secrets, goAway } = fixture()
  stored.set('db', { version: '1', data: { password: base64('first') } })
  secrets.lookUp('db', 'password')
  await secrets.fetchMissing()
  goAway()
  await expect(secrets.refresh()).rejects.toThrow('away')
  expect(secrets.lookUp('db', 'password')).toBe('first')
  secrets.lookUp('other', 'password')
  await expect(secrets.fetchMissing()).rejects.toThrow('away')
})

test('only valid names are requested, up to a limit', async () => {
  const { asked, secrets } = fixture()
  for (const name of ['UPPER', 'a/b', '..', '', 'ok']) secrets.lookUp(name, 'x')
  await secrets.fetchMissing()
  expect(asked).toEqual(['ok'])
  for (let i = 0; i < 2_000; i++) secrets.lookUp(`n${i}`, 'x')
  await secrets.fetchMissing()
  expect(asked.length).toBe(1_000)
})

test('concurrent callers share a slow read', async () => {
  const { stored, asked, secrets } = fixture()
  stored.set('db', { version: '1', data: {} })
  secrets.lookUp('db', 'password')
  await secrets.fetchMissing()
  stored.set('db', { version: '2', data: {} })
  expect(await Promise.all([secrets.refresh(), secrets.refresh(), secrets.refresh()])).toEqual([true, true, true])
  expect(asked).toEqual(['db', 'db'])
  expect(await secrets.refresh()).toBe(false)
})
