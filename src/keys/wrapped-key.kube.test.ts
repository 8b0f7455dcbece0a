import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type OpenBao, startOpenBao } from '#testing/sts/openbao.ts'
import { loadAuditKeys } from './audit-keys.ts'
import { loadSecretKeys } from './secret-keys.ts'

describe.skipIf(inject('openbao') === undefined)('a secret key that Transit wraps', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-wrapped-'))
  const key = randomBytes(32).toString('base64')
  let bao: OpenBao
  let environment: Record<string, string>
  let ciphertext = ''

  beforeAll(async () => {
    bao = await startOpenBao({ tls: true })
    await bao.call('POST', 'sys/mounts/transit', { type: 'transit' })
    await bao.call('POST', 'transit/keys/gatehouse', {})
    const { data } = await bao.call('POST', 'transit/encrypt/gatehouse', { plaintext: key })
    ciphertext = String((data as { ciphertext: string }).ciphertext)
    writeFileSync(join(folder, 'ca.pem'), bao.ca)
    writeFileSync(join(folder, 'token'), `${bao.rootToken}\n`)
    environment = {
      GATEHOUSE_TRANSIT_ADDRESS: bao.address,
      GATEHOUSE_TRANSIT_KEY: 'transit/gatehouse',
      GATEHOUSE_TRANSIT_CA_FILE: join(folder, 'ca.pem'),
      GATEHOUSE_TRANSIT_TOKEN_FILE: join(folder, 'token'),
    }
  })

  afterAll(async () => {
    await bao?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('works like the plain key, also in a list with a plain one', async () => {
    const plain = await loadSecretKeys({ environment: { GATEHOUSE_SECRET_KEY: key }, dataFolder: folder })
    const other = randomBytes(32).toString('base64')
    const mixed = { ...environment, GATEHOUSE_SECRET_KEY: `${ciphertext},${other}` }
    const wrapped = await loadSecretKeys({ environment: mixed, dataFolder: folder })
    expect([wrapped.length, wrapped[0]?.id, wrapped[0]?.key.equals(plain[0]?.key as never)]).toEqual([
      2,
      plain[0]?.id,
      true,
    ])
    const audit = await loadAuditKeys({ environment: mixed, dataFolder: folder }, 'gateway')
    const plainAudit = await loadAuditKeys(
      { environment: { GATEHOUSE_SECRET_KEY: key }, dataFolder: folder },
      'gateway',
    )
    expect(audit[0]?.id).toBe(plainAudit[0]?.id)
  })

  test('is created wrapped in the data folder, and is the same at the next start', async () => {
    const dataFolder = join(folder, 'data')
    const [made] = await loadSecretKeys({ environment, dataFolder })
    const text = readFileSync(join(dataFolder, 'keys', 'workflow-secret.key'), 'utf8')
    expect(text).toMatch(/^vault:v1:/)
    const [again] = await loadSecretKeys({ environment, dataFolder })
    expect(again?.id).toBe(made?.id)
  })

  test('is rejected with a reason, and needs the service only once', async () => {
    const load = (text: string) =>
      loadSecretKeys({ environment: { ...environment, GATEHOUSE_SECRET_KEY: text }, dataFolder: folder })
    await expect(load('vault:v1:AAAA')).rejects.toThrow('Transit refused to use transit/gatehouse for the secret key')
    await load(ciphertext)
    await bao.kill()
    expect(await load(ciphertext)).toHaveLength(1)
    await expect(load(`${ciphertext.slice(0, -4)}AAAA`)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })
})
