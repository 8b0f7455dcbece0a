import {
  findDemoPasswords,
  findDevelopmentIssuers,
  findMissingAuditCopy,
  findOpenCallWorkflow,
  findOpenCookies,
  findOpenRegistration,
  findUnverifiedMail,
  findWeakAdministrators,
} from '#server/production/configuration-checks.ts'
import type { Finding, ProductionCheck, ProductionSetup } from '#server/production/production-check.ts'
import {
  certificateNote,
  findBadCertificates,
  findPlainDatabase,
  findPlainListener,
  findPublicMetrics,
  findUnsafeKeys,
  findWrongUrl,
} from '#server/production/serving-checks.ts'

/** What `gatehouse check --production` verifies, in the order of docs/guides/hardening.md: each title is a heading there. */
export const productionChecks: readonly ProductionCheck[] = [
  {
    id: 'tls',
    title: 'Encrypt the public listener',
    remedy:
      'Give --tls-cert and --tls-key, or put a proxy with TLS in front and name its addresses by --trusted-proxy.',
    find: findPlainListener,
  },
  {
    id: 'certificate',
    title: 'Renew certificates in time',
    remedy: 'Replace certificate and key together; a running gateway takes them up within seconds.',
    find: findBadCertificates,
    note: certificateNote,
  },
  {
    id: 'public-url',
    title: 'Set the public address',
    remedy: 'Set GATEHOUSE_URL to the https address that users see, with a host that URLs are configured for.',
    find: findWrongUrl,
  },
  {
    id: 'keys',
    title: 'Keep the keys',
    remedy:
      'Give GATEHOUSE_SECRET_KEY, put --data on a disk that stays, and use mode 0700 for folders and 0600 for files.',
    find: findUnsafeKeys,
  },
  {
    id: 'database',
    title: 'Encrypt the connection to PostgreSQL',
    remedy: 'Add sslmode=verify-full to the address, and sslrootcert=FILE for an authority of your own.',
    find: findPlainDatabase,
  },
  {
    id: 'metrics',
    title: 'Keep metrics inside',
    remedy: 'Let --metrics listen on a loopback or private address, or restrict who reaches it by a network policy.',
    find: findPublicMetrics,
  },
  {
    id: 'demo-passwords',
    title: 'Remove demo passwords',
    remedy: 'Remove "demoPasswords", and set passwords by "gatehouse user passwd".',
    find: findDemoPasswords,
  },
  {
    id: 'development-issuer',
    title: 'Remove the development issuer',
    remedy: 'Remove filters.DevelopmentIssuer, and name an issuer that is reached by https.',
    find: findDevelopmentIssuers,
  },
  {
    id: 'cookies',
    title: 'Protect session cookies',
    remedy: 'Remove "secure: false", "httpOnly: false", "sameSite: None" and "domain" from cookieConfig.',
    find: findOpenCookies,
  },
  {
    id: 'second-factor',
    title: 'Require a second factor of administrators',
    remedy: 'Add auth.Totp or auth.Passkey as a required link of the chain, and give weaker chains a lower level.',
    find: findWeakAdministrators,
  },
  {
    id: 'mail-links',
    title: 'Link users by verified claims',
    remedy: 'Remove "acceptUnverifiedMail", or look users up by a claim that they cannot choose.',
    find: findUnverifiedMail,
  },
  {
    id: 'registration',
    title: 'Guard registration',
    remedy:
      'Add a human check ("humanCheck"), "requireInvitation", or an approval before the first task that provisions, on every way.',
    find: findOpenRegistration,
  },
  {
    id: 'call-workflow',
    title: 'Narrow call-workflow',
    remedy:
      'List groups in "allowGroups", leave "requireRequestorMatch" on, and name the subjects that callers may act for.',
    find: findOpenCallWorkflow,
  },
  {
    id: 'audit',
    title: 'Copy the audit elsewhere',
    remedy: 'Add an AuditSink, or an AuditAnchor.',
    find: findMissingAuditCopy,
  },
]

/** One line of the answer: a check that found nothing, or one thing that it found. */
export interface CheckedLine {
  readonly level: 'ok' | 'warn' | 'fail'
  readonly check: string
  readonly title: string
  readonly at?: string
  readonly message?: string
  readonly remedy?: string
}

export function runProductionChecks(setup: ProductionSetup): CheckedLine[] {
  return productionChecks.flatMap(({ id: check, title, remedy, find, note }): CheckedLine[] => {
    const found = find(setup)
    const message = found.length === 0 ? note?.(setup) : undefined
    if (found.length === 0) return [{ level: 'ok', check, title, ...(message === undefined ? {} : { message }) }]
    return found.map((finding: Finding) => ({ ...finding, check, title, remedy }))
  })
}

const words = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

/** `FAIL cookies: portal.yaml:14:5: spec.cookieConfig.secure: what is wrong. What to do.` */
export const formatChecked = ({ level, check, title, at, message, remedy }: CheckedLine): string =>
  `${words[level]} ${check}: ${at === undefined ? [title, message].filter(Boolean).join(': ') : `${at}: ${message}. ${remedy}`}`
