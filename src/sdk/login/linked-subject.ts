import { Attributes, isDeactivated } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import { issuerIdentity } from '#identity/identity.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import { flag, parsed, text } from '#sdk/module/parameter-types.ts'
import type { ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'

/** The parameters of every mechanism that turns a token's claims into a subject. */
export const linkParameters = {
  linkToDirectory: flag({ about: 'Finds the caller in the virtual directory.' }),
  noMatchOU: text({
    about: 'The `ou` of the mock entry for a caller who is not in the directory.',
    required: true,
  }),
  uidAttr: text({
    about:
      'The claim that identifies the user; it must be a text. Requests and sessions belong to it, so users must not be able to choose it at the issuer: a user with the login of another user here is treated as that user.',
    fallback: 'sub',
  }),
  lookupFilter: parsed('filter template', parseFilterTemplate, {
    about:
      'The RFC 4515 filter that finds the caller in the directory, with attributes of the caller, such as claims, as `${name}`.',
    requirement: 'with `linkToDirectory`',
  }),
  acceptUnverifiedMail: flag({
    about:
      'Let `lookupFilter` read a mail claim (`email`, `mail`), or compare a mail attribute (`mail`, `emails` and the like) with any claim, although the claim `email_verified` is not `true`. Set it only where the issuer verifies every address.',
  }),
  defaultObjectClass: text({ about: 'The `objectClass` of the mock entry.', fallback: 'inetOrgPerson' }),
}

export interface SubjectLink {
  readonly uidAttr: string
  readonly noMatchOU: string
  readonly objectClass: string
  /** Undefined if callers are not looked up. */
  readonly lookup: FilterTemplate | undefined
  /** The lookup may use a mail address that the issuer has not verified. */
  readonly acceptUnverifiedMail: boolean
}

export function parseSubjectLink(
  given: ParsedParameters<typeof linkParameters>,
  params: Params,
  issues: Issues,
): SubjectLink {
  const { uidAttr, noMatchOU, linkToDirectory, lookupFilter, acceptUnverifiedMail } = given
  if (linkToDirectory && params.values('lookupFilter').every((value) => value === '')) {
    issues.error(params.pathOf('lookupFilter'), 'parameter "lookupFilter" is required where linkToDirectory is "true"')
  }
  if (linkToDirectory && acceptUnverifiedMail && mailClaims(lookupFilter).length > 0) {
    issues.warning(params.pathOf('acceptUnverifiedMail'), unverifiedMailWarning)
  }
  try {
    Dn.of([uidAttr, 'x'])
  } catch (error) {
    issues.error(params.pathOf('uidAttr'), `"uidAttr": ${error instanceof Error ? error.message : String(error)}`)
  }
  return {
    uidAttr,
    noMatchOU,
    objectClass: given.defaultObjectClass,
    lookup: linkToDirectory ? lookupFilter : undefined,
    acceptUnverifiedMail,
  }
}

/** How long a mechanism may remember the directory's answer about a caller, since the entry may change. */
export const linkedForMillis = 3_000

type LinkedSubject = Pick<Subject, 'dn' | 'identity' | 'uid' | 'attributes' | 'link'>

type LinkOutcome =
  | { readonly kind: 'linked'; readonly subject: LinkedSubject; readonly found: boolean }
  /** `reason` is for the log. */
  | { readonly kind: 'refused'; readonly reason: string }

/**
 * The subject of the claims: the one directory entry that the lookup finds, with the claims it lacks added; or, if
 * there is none, a mock entry `<uidAttr>=<claim>,ou=<noMatchOU>,<root>`. Rejects if a claim is missing, several entries
 * match, the only one is deactivated, or the lookup uses a mail address that is not verified. Claims only ever become
 * values, of the name as of the filter.
 */
export async function linkSubject(
  claims: Attributes,
  link: SubjectLink,
  root: string,
  host: Pick<AuthHost, 'directory'>,
): Promise<LinkOutcome> {
  const [uid, ...others] = claims.values(link.uidAttr)
  if (uid === undefined || uid === '') return refused(`the claim "${link.uidAttr}" is missing`)
  if (others.length > 0) return refused(`the claim "${link.uidAttr}" has several values`)
  const base = Dn.parse(root)
  if (link.lookup !== undefined) {
    const filter = link.lookup.bind((name) => claims.values(name))
    if (filter === undefined) return refused('a claim that lookupFilter names is missing')
    const unverified = link.acceptUnverifiedMail ? undefined : unverifiedMail(mailClaims(link.lookup), claims)
    if (unverified !== undefined) return refused(unverified)
    const [entry, second] = await host.directory.search({ base, scope: 'sub', filter, limit: 2 })
    if (second !== undefined) return refused('lookupFilter finds several entries')
    if (entry !== undefined) {
      if (isDeactivated(entry.attributes)) return refused('the person is switched off in the directory')
      const attributes = shownAttributes(entry)
      const added = new Attributes()
      for (const [name, values] of claims) if (!attributes.has(name)) added.setClaim(name, values)
      for (const [name, values] of added) attributes.setClaim(name, values)
      return {
        kind: 'linked',
        found: true,
        subject: {
          dn: entry.dn,
          identity: entry.identity,
          uid: attributes.first(link.uidAttr) ?? uid,
          attributes,
          link: directoryLink(entry, { filter, uidAttr: link.uidAttr, added }),
        },
      }
    }
  }
  const attributes = claims.claimed()
  attributes.set('objectClass', [link.objectClass])
  const issuer = claims.first('iss') ?? base.child('ou', link.noMatchOU).key
  const identity = issuerIdentity(issuer, claims.first('sub') ?? uid)
  const dn = mockName(base, link, link.uidAttr, uid)
  return { kind: 'linked', found: false, subject: { dn, identity, uid, attributes } }
}

export const unverifiedMailWarning =
  'anyone who can choose a mail address at the issuer can log in as the user who has that address here; ' +
  'remove "acceptUnverifiedMail" unless the issuer verifies every address'

/** Names of mail addresses in directories and tokens: `mail`, `emails`, `rfc822Mailbox` and the like, and OIDs. */
export const isMailName = (name: string): boolean =>
  (/mail/i.test(name) && name.toLowerCase() !== 'email_verified') ||
  /^(?:proxyAddresses|0\.9\.2342\.19200300\.100\.1\.3|1\.2\.840\.113549\.1\.9\.1)(?:;|$)/i.test(name)

/** The claims that a lookup uses as mail addresses, by their names or by the attributes it compares them with. */
const mailClaims = (lookup: FilterTemplate | undefined): readonly string[] =>
  (lookup?.comparisons ?? []).flatMap(({ attribute, placeholder }) =>
    isMailName(attribute) || isMailName(placeholder) ? [placeholder] : [],
  )

/**
 * Why these claims, which are mail addresses, must not find a directory entry, for the log; undefined if they may. At
 * many issuers users choose their mail address, so it identifies a user only once the issuer has verified it:
 * `email_verified`, which is about `email` and no other address.
 */
export function unverifiedMail(names: readonly string[], claims: Attributes): string | undefined {
  const [first] = names
  if (first === undefined) return undefined
  const [verified, ...more] = claims.names().includes('email_verified') ? claims.values('email_verified') : []
  if (verified !== 'true' || more.length > 0) {
    return `the claim "${first}" is not verified: "email_verified" is not true, and acceptUnverifiedMail is not set`
  }
  const addresses = claims.values('email').map((address) => address.toLowerCase())
  const isVerified = (name: string): boolean =>
    (addresses.length === 0 && isMailName(name)) ||
    claims.values(name).every((address) => addresses.includes(address.toLowerCase()))
  const other = names.find((name) => !isVerified(name))
  return other === undefined
    ? undefined
    : `the claim "${other}" is not verified: "email_verified" is about "email", which is absent or another address`
}

/** The name of a mock entry; the value is a claim. */
export const mockName = (base: Dn, link: SubjectLink, type: string, value: string): Dn =>
  base.child('ou', link.noMatchOU).child(type, value).claimed()

const refused = (reason: string): LinkOutcome => ({ kind: 'refused', reason })

/**
 * A token's claims as attributes: texts and lists of texts unchanged, numbers and booleans as text, and anything deeper
 * as JSON text. Undefined if two claims differ in letter case only, since attribute names ignore case and one would
 * pass for the other.
 */
export function claimAttributes(claims: Readonly<Record<string, unknown>>): Attributes | undefined {
  const attributes = new Attributes()
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(claims)) {
    const key = name.toLowerCase()
    if (seen.has(key)) return undefined
    seen.add(key)
    attributes.set(name, Array.isArray(value) ? value.flatMap(claimText) : claimText(value))
  }
  return attributes
}

function claimText(value: unknown): string[] {
  if (value === null || value === undefined) return []
  return [typeof value === 'string' ? value : JSON.stringify(value)]
}
