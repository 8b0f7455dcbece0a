import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import type { Configuration, UrlConfig } from '#config/configuration/configuration.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import { textsIn } from '#sdk/page/page-texts.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { approvalLinkKey, approvalLinkKeys, readApprovalLink, signApprovalLink } from './approval-link.ts'
import { approvalLinks, linksFor } from './approval-links.ts'

const keysOf = (...bytes: number[]): Pick<KeySource, 'secretKeys'> => ({
  secretKeys: async () => bytes.map((byte) => createSecretKey(Buffer.alloc(32, byte))),
})
const keys = keysOf(1)
const now = new Date('2026-01-02T03:04:05Z')
const expires = new Date('2026-01-03T03:04:05Z')
const links = () =>
  approvalLinks({ id: 'a-1', version: 3 }, userRef('boss'), { url: 'https://x.test/decide?a=1', expires, keys })
const tokenOf = (link: string): string => new URL(link).searchParams.get('token') ?? ''
const read = async (token: string, at = now) => readApprovalLink(token, await approvalLinkKeys(keys), at)

describe('a link', () => {
  test('contains its approval, version, approver and decision', async () => {
    const { approve, deny } = await links()
    expect(approve.startsWith('https://x.test/decide?a=1&token=')).toBe(true)
    const claims = { approval: 'a-1', version: 3, approver: 'boss', identity: userRef('boss').identity }
    expect(await read(tokenOf(approve))).toEqual({ kind: 'valid', claims: { ...claims, approve: true } })
    expect(await read(tokenOf(deny))).toEqual({ kind: 'valid', claims: { ...claims, approve: false } })
  })

  test('without an approver names none', async () => {
    const options = { url: 'https://x.test/decide', expires, keys }
    const { approve } = await approvalLinks({ id: 'a-1', version: 3 }, undefined, options)
    expect(await read(tokenOf(approve))).toEqual({
      kind: 'valid',
      claims: { approval: 'a-1', version: 3, approve: true },
    })
  })

  test('is valid until it expires', async () => {
    const token = tokenOf((await links()).approve)
    expect(await read(token, new Date(expires.getTime() - 1000))).toMatchObject({ kind: 'valid' })
    expect(await read(token, expires)).toEqual({ kind: 'expired' })
  })

  test('of another installation, or changed anywhere, is rejected as forged', async () => {
    const token = tokenOf((await links()).approve)
    expect(await readApprovalLink(token, await approvalLinkKeys(keysOf(2, 3)), now)).toEqual({ kind: 'forged' })
    expect(await readApprovalLink(token, [], now)).toEqual({ kind: 'forged' })
    await fc.assert(
      fc.asyncProperty(fc.nat(token.length - 2), fc.constantFrom('A', 'b', '-', '.'), async (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1)
        return changed === token || (await read(changed)).kind === 'forged'
      }),
    )
  })

  test('of a replaced key is still valid, and new links use the new key', async () => {
    const both = keysOf(2, 1)
    const old = tokenOf((await links()).approve)
    const read = (token: string, keysNow: typeof keys) =>
      approvalLinkKeys(keysNow).then((some) => readApprovalLink(token, some, now))
    expect(await read(old, both)).toMatchObject({ kind: 'valid' })
    expect(await read(old, keysOf(2))).toEqual({ kind: 'forged' })
    const made = await approvalLinks({ id: 'a', version: 1 }, userRef('boss'), {
      url: 'https://x.test',
      expires,
      keys: both,
    })
    expect(await read(tokenOf(made.deny), keysOf(2))).toMatchObject({ kind: 'valid' })
    expect(await read(tokenOf(made.deny), keys)).toEqual({ kind: 'forged' })
  })

  test('that is not a token, or a token for another purpose, is rejected as forged', async () => {
    const key = await approvalLinkKey(keys)
    const claims = {
      apr: 'a-1',
      ver: 3,
      act: 'approve',
      sub: 'boss',
      who: 'entry:people:boss',
      exp: expires.getTime() / 1000,
    }
    const made = (payload: object, header = { alg: 'HS256', typ: 'approval-link+jwt' }) =>
      new SignJWT({ ...payload }).setProtectedHeader(header).sign(key)
    expect(await read(await made(claims))).toMatchObject({ kind: 'valid' })
    const { exp: _, ...endless } = claims
    const unsigned = `${Buffer.from('{"alg":"none","typ":"approval-link+jwt"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`
    for (const token of [
      '',
      'a.b.c',
      '\u0000',
      'x'.repeat(100_000),
      unsigned,
      await made(endless),
      await made(claims, { alg: 'HS256', typ: 'JWT' }),
      await made({ ...claims, act: 'cancel' }),
      await made({ ...claims, ver: '3' }),
      await made({ ...claims, apr: 7 }),
      await made({ ...claims, who: undefined }),
      await made({ ...claims, sub: undefined }),
    ]) {
      expect(await read(token)).toEqual({ kind: 'forged' })
    }
  })

  test('is short enough for a mail', async () => {
    const long = {
      approval: 'x'.repeat(36),
      version: 1000,
      approver: 'someone.with.a.long.name@example.com',
      identity: entryIdentity('people', crypto.randomUUID()),
      approve: true,
    }
    expect((await signApprovalLink(long, expires, await approvalLinkKey(keys))).length).toBeLessThan(500)
  })
})

describe('the links of a configuration', () => {
  interface Page {
    readonly decide?: string
    readonly withoutLogin?: boolean
    readonly portalUrl?: string
  }
  const filter = ({ decide, withoutLogin = false, portalUrl }: Page) => ({
    approvalLinks: decide === undefined ? undefined : { url: decide, validMillis: 60_000, withoutLogin },
    portalUrl,
  })
  const source = (...pages: Page[]) => {
    const urls = pages.map((page) => ({ filters: [filter(page)] }) as unknown as UrlConfig)
    const configuration = { applications: [{ urls }] } as unknown as Configuration
    return linksFor(configuration, { keys, clock: () => now })
  }
  const approval = { id: 'a-1', version: 1 }
  const portal = { label: 'Open in the portal', url: 'https://one.test/portal/approvals/a-1' }

  test('point to the first page that decides, with its lifetime, and to the portal', async () => {
    const pages = [{}, { decide: 'https://one.test/decide' }, { decide: 'https://two.test/decide' }]
    const made = await source(...pages, { portalUrl: 'https://one.test/portal' })(
      approval,
      userRef('boss'),
      textsIn('en'),
    )
    expect(made.map(({ label, style }) => [label, style])).toEqual([
      ['Approve', 'primary'],
      ['Deny', 'danger'],
      ['Open in the portal', undefined],
    ])
    expect(made[2]).toEqual(portal)
    expect(made[1]?.url.startsWith('https://one.test/decide?token=')).toBe(true)
    const token = tokenOf(made[1]?.url ?? '')
    expect(await read(token, new Date(now.getTime() + 59_000))).toMatchObject({ kind: 'valid' })
    expect(await read(token, new Date(now.getTime() + 60_000))).toEqual({ kind: 'expired' })
  })

  test('are labelled in the language of their reader', async () => {
    const page = { decide: 'https://one.test/decide', portalUrl: 'https://one.test/portal' }
    const made = await source(page)(approval, userRef('boss'), textsIn('de'))
    expect(made.map(({ label }) => label)).toEqual(['Genehmigen', 'Ablehnen', 'Im Portal öffnen'])
  })

  test('of a channel name no approver, and only point to a page with a login', async () => {
    const page = { decide: 'https://one.test/decide', portalUrl: 'https://one.test/portal' }
    const [approve] = await source(page)(approval, undefined, textsIn('en'))
    expect(await read(tokenOf(approve?.url ?? ''))).toEqual({
      kind: 'valid',
      claims: { approval: 'a-1', version: 1, approve: true },
    })
    expect(await source({ ...page, withoutLogin: true })(approval, undefined, textsIn('en'))).toEqual([portal])
  })

  test('are absent without a page', async () => {
    expect(await source({})(approval, userRef('boss'), textsIn('en'))).toEqual([])
  })
})
