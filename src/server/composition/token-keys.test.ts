import { generateKeyPairSync } from 'node:crypto'
import { access, chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { PublishDestination } from '#config/configuration/token-keys.ts'
import { SecretSource } from '#config/context/secrets.ts'
import { noKeyMeter } from '#features/sts/publish/key-keeper.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { SecretValues } from '#kernel/secret-values.ts'
import { KeyStore } from '#keys/key-store.ts'
import { publicTokenKey } from '#protocols/sts/signed-token.ts'
import type { Target } from '#sdk/target/target.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { SetClock, tokenIssuer } from '#testing/sts/token-keys-fixture.ts'
import { createKeyKeeper, createTokenKeys } from './token-keys.ts'

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const pem = (key: ReturnType<typeof newKey>) => String(key.export({ type: 'pkcs8', format: 'pem' }))

function installation() {
  const [configFolder, dataFolder] = [temporaryFolder(), temporaryFolder()]
  const clock = new SetClock()
  const store = new KeyStore(memoryDatabase(clock.read))
  const secrets = new SecretSource(join(configFolder, 'secrets'), {}, new SecretValues())
  const audit = { append: async () => {} }
  const parts = {
    store,
    audit,
    configFolder,
    dataFolder,
    secrets,
    environment: {},
    clock: clock.read,
    log: silentLogger,
  }
  return { ...parts, rings: () => createTokenKeys(parts) }
}

test('a key comes from the configuration, else from a secret, else it is created and stored under the key of the data folder', async () => {
  const made = installation()
  await mkdir(join(made.configFolder, 'keys'))
  await mkdir(join(made.configFolder, 'secrets', 'in-secret'), { recursive: true })
  const [inFile, inSecret] = [newKey(), newKey()]
  await writeFile(join(made.configFolder, 'keys', 'in-file.key'), pem(inFile))
  await writeFile(join(made.configFolder, 'secrets', 'in-secret', 'tls.key'), pem(inSecret))
  const issuers = ['in-file', 'in-secret', 'neither'].map((name) => tokenIssuer({ endpoint: name, keypair: name }))
  const rings = made.rings()
  rings.configure(issuers)
  expect((await rings.active('in-file')).kid).toBe(publicTokenKey(inFile).kid)
  expect((await rings.active('in-secret')).kid).toBe(publicTokenKey(inSecret).kid)
  const { kid } = await rings.active('neither')
  const later = made.rings()
  later.configure(issuers)
  expect((await later.active('neither')).kid).toBe(kid)
})

test('documents go to their destinations, and to a target that is a cluster', async () => {
  const made = installation()
  const rings = made.rings()
  const written: unknown[] = []
  const objects = {
    get: async () => undefined,
    create: async (_resource: object, object: unknown) => void written.push(object),
  }
  const targets: Readonly<Record<string, object>> = { cluster: { objects }, people: {} }
  const keeper = createKeyKeeper({
    ...made,
    rings,
    meter: noKeyMeter,
    useTarget: async (name, work) => {
      const target = targets[name]
      if (target === undefined) throw new GatewayError('INTERNAL', `there is no target "${name}"`)
      return work(target as Target)
    },
  })
  const map = (target: string): PublishDestination => ({ type: 'configmap', target, namespace: 'sts', name: 'docs' })
  const destinations = [{ type: 'folder', folder: 'site' } as const, map('cluster'), map('people'), map('none')]
  const issuer = tokenIssuer({ readBack: 'written', destinations })
  rings.configure([issuer])
  const outcome = await keeper.pass(issuer)
  await access(join(made.dataFolder, 'site', '.well-known', 'openid-configuration'))
  expect(written).toMatchObject([{ kind: 'ConfigMap', metadata: { name: 'docs', namespace: 'sts' } }])
  expect(outcome?.publications.get('configmap cluster/sts/docs')?.failures).toBe(0)
  expect(outcome?.publications.get('configmap people/sts/docs')?.error).toContain('not a Kubernetes cluster')
  expect(outcome?.publications.get('configmap none/sts/docs')?.error).toContain('no target')
})

test('a configured private key that other users can read is closed to them, with one line; a public one stays unchanged', async () => {
  const made = installation()
  const keys = join(made.configFolder, 'keys')
  await mkdir(keys)
  const [mine, shared] = [join(keys, 'mine.key'), join(keys, 'shared.pem')]
  await writeFile(mine, pem(newKey()))
  await writeFile(shared, '-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n')
  for (const file of [mine, shared]) await chmod(file, 0o644)
  const lines: unknown[] = []
  const rings = createTokenKeys({ ...made, log: { ...silentLogger, warn: (_, fields) => void lines.push(fields) } })
  rings.configure(['mine', 'shared'].map((name) => tokenIssuer({ endpoint: name, keypair: name })))
  for (const name of ['mine', 'shared', 'mine']) await rings.tend(name)
  expect((await stat(mine)).mode & 0o777).toBe(0o600)
  expect((await stat(shared)).mode & 0o777).toBe(0o644)
  expect(lines).toEqual([{ paths: [`${mine} (0644)`] }])
})
