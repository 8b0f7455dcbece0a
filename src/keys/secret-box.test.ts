import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { SecretBox } from './secret-box.ts'
import { checkSecretKeys, loadSecretKeys } from './secret-keys.ts'

const folder = mkdtempSync(join(tmpdir(), 'sealed-secret-'))
afterAll(() => rmSync(folder, { recursive: true }))

const keyText = (byte: number): string => Buffer.alloc(32, byte).toString('base64')
const boxOf = (keys: string): SecretBox =>
  new SecretBox(() => loadSecretKeys({ environment: { GATEHOUSE_SECRET_KEY: keys }, dataFolder: folder }))

describe('a secret', () => {
  test('can be decrypted for its run', async () => {
    const box = boxOf(keyText(1))
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.string(), async (password, run) => {
        const sealed = await box.seal({ password }, run)
        expect(await box.open(sealed, run)).toEqual({ password })
      }),
    )
  })

  test('is not visible, and looks different each time', async () => {
    const box = boxOf(keyText(1))
    const sealed = await box.seal({ password: 'hunter2hunter2' }, 'run')
    expect(Buffer.from(sealed, 'base64url').toString('latin1') + sealed).not.toContain('hunter2')
    expect(await box.seal({ password: 'hunter2hunter2' }, 'run')).not.toBe(sealed)
  })

  test("can't be decrypted for another run, or after any change", async () => {
    const box = boxOf(keyText(1))
    const sealed = await box.seal({ password: 'x' }, 'run')
    await expect(box.open(sealed, 'other')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    const [form, id, nonce, body = ''] = sealed.split('.')
    const flipped = Buffer.from(body, 'base64url')
    for (let i = 0; i < flipped.length; i++) {
      const changed = Buffer.from(flipped)
      changed[i] = (changed[i] ?? 0) ^ 1
      const text = [form, id, nonce, changed.toString('base64url')].join('.')
      await expect(box.open(text, 'run')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    }
    for (const text of ['', 'g1', 'g1...', `g2.${id}.${nonce}.${body}`, `${sealed}.x`, `g1.${id}.AA.${body}`]) {
      await expect(box.open(text, 'run')).rejects.toThrow()
    }
  })

  test('can be decrypted while its key is known, and new ones use the first key', async () => {
    const old = await boxOf(keyText(1)).seal({ password: 'x' }, 'run')
    const both = boxOf(`${keyText(2)},${keyText(1)}`)
    expect(await both.open(old, 'run')).toEqual({ password: 'x' })
    const fresh = await both.seal({ password: 'y' }, 'run')
    expect(await boxOf(keyText(2)).open(fresh, 'run')).toEqual({ password: 'y' })
    await expect(boxOf(keyText(1)).open(fresh, 'run')).rejects.toMatchObject({ code: 'INTERNAL' })
  })
})

describe('the key', () => {
  test('is created once in the data folder, readable by us only', async () => {
    const dataFolder = join(folder, 'data')
    const load = () => loadSecretKeys({ environment: {}, dataFolder })
    const [one, two] = await Promise.all([load(), load()])
    expect(one[0]?.id).toBe(two[0]?.id)
    const path = join(dataFolder, 'keys', 'workflow-secret.key')
    expect(statSync(path).mode & 0o077).toBe(0)
    expect(Buffer.from(readFileSync(path, 'utf8'), 'base64').length).toBe(32)
    writeFileSync(path, 'short')
    await expect(load()).rejects.toThrow('32 bytes in base64')
  })

  test('a wrong one is rejected without being shown', () => {
    const wrong = Buffer.alloc(16, 7).toString('base64')
    expect(() => checkSecretKeys({ GATEHOUSE_SECRET_KEY: wrong })).toThrow(/^GATEHOUSE_SECRET_KEY: (?!.*BwcH)/)
    expect(() => checkSecretKeys({ GATEHOUSE_SECRET_KEY: `${keyText(1)},${keyText(2)}` })).not.toThrow()
    expect(() => checkSecretKeys({})).not.toThrow()
  })
})
