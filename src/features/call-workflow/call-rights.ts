import * as z from 'zod'
import type { CallHost } from '#features/call-workflow/host.ts'
import type { Directory } from '#identity/directory.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { Identity } from '#identity/identity.ts'
import { loginProblem } from '#identity/login-name.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import { type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { jsonPointer, storableText } from '#sdk/api/json-body.ts'
import { type FoundLogin, findLogin, isOwnLogin } from '#sdk/login/own-login.ts'
import { type Parameter, parsedList } from '#sdk/module/parameter-types.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { BoundSubject, GroupChanges, WorkflowCall } from '#sdk/workflow/workflow.ts'
import { isGroupIn, sameLogin, withoutGroups } from '#sdk/workflow/workflow-user.ts'
import type { RefusedCall } from '#workflows/record/run-requests.ts'

/** A kind of user whom callers may act for; the template's values are attributes of the caller. */
type SubjectRule = 'caller' | 'any' | FilterTemplate

export const subjectParameter: Parameter<readonly SubjectRule[]> = parsedList<SubjectRule>(
  'list',
  (value) => {
    if (value === 'caller' || value === 'any') return value
    try {
      return parseFilterTemplate(value)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`must be caller, any or a filter, not "${value}": ${reason}`)
    }
  },
  {
    about:
      'The users whom callers may act for: `caller` (themselves), `any`, or an RFC 4515 filter that the directory entry of the user must match, with attributes of the caller as `${attribute}`; may repeat, and one that holds is enough.',
    requirement: 'no, `caller`; see [below](#what-callers-may-ask-for)',
    fallback: ['caller'],
  },
)

interface CallRights {
  readonly subject: readonly SubjectRule[]
  /** `*` means every group. */
  readonly allowGroups: readonly string[]
  readonly requireRequestorMatch: boolean
}

/** The parameters of the rights. */
export const rightsParameters = ['subject', 'allowGroups', 'requireRequestorMatch'] as const

/** Of a caller without a directory entry, if the configuration has none of the parameters. */
const programRights: CallRights = { subject: ['any'], allowGroups: ['*'], requireRequestorMatch: false }

/** A caller whose login is that of a directory user may be that user without a link, so it has no more rights. */
const isProgram = async ({ level, link, uid }: Subject, directory: Pick<Directory, 'search'>): Promise<boolean> =>
  level > 0 && link === undefined && (await findLogin(uid, directory)).kind === 'none'

/** The caller is absent where it is the requester. */
type ClaimedHead = Pick<RunHead, 'requester' | 'caller' | 'who'>

/** What a call requests beyond its workflow: the subject, the requester and the memberships. */
export interface CallClaims {
  /** The user as the run gets it. */
  readonly user: WorkflowCall['user']
  readonly head: ClaimedHead
  /** Present if the caller may act for certain users only. */
  readonly bound?: BoundSubject | undefined
  readonly keepGroups: boolean
  readonly groupChanges?: GroupChanges
}

interface Refusal extends FieldProblem {
  readonly audit: RefusedCall['refused'][number]
}

const maxRefusals = 20

export class CallRefused extends GatewayError {
  readonly refused: RefusedCall['refused']

  constructor(refusals: readonly Refusal[]) {
    const shown = refusals.slice(0, maxRefusals)
    super('ACCESS_DENIED', shown.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; '), {
      publicText: 'The call asks for something that callers may not ask for at this URL.',
      problems: shown.map(({ pointer, detail }) => ({ pointer, detail })),
    })
    this.refused = shown.map(({ audit }) => audit)
  }
}

/** Throws CallRefused, which names every part of the body that the rights of this URL do not cover. */
export async function readClaims(
  body: CallBody,
  user: WorkflowCall['user'],
  caller: Subject,
  configured: CallRights & { readonly namesRights: boolean },
  host: Pick<CallHost, 'directory' | 'loginAttributes'>,
): Promise<CallClaims> {
  const refusals: Refusal[] = []
  const rights = configured.namesRights || !(await isProgram(caller, host.directory)) ? configured : programRights
  const head = await readRequester(body.requestor, caller, rights, host.directory, refusals)
  const { login, identity, bound } = await readSubject(body, user, caller, rights, host, refusals)
  const memberships = readGroups(body.user.groups, rights, refusals)
  if (refusals.length > 0) throw new CallRefused(refusals)
  const attributes = user.attributes.clone()
  if (login !== user.userID) attributes.set(body.uidAttributeName, [login])
  return {
    head: { ...head, who: { ...head.who, subject: identity } },
    user: { ...user, userID: login, attributes, groups: memberships.groups },
    bound,
    ...memberships.known,
  }
}

async function readRequester(
  named: string | undefined,
  caller: Subject,
  { requireRequestorMatch }: CallRights,
  directory: Pick<Directory, 'search'>,
  refusals: Refusal[],
): Promise<ClaimedHead> {
  const own = { requester: caller.uid, who: { requester: caller.identity } }
  if (named === undefined || sameLogin(named, caller.uid)) return own
  const found = await findLogin(named, directory)
  if (isOwnLogin(found, named, callerRef(caller))) return own
  if (requireRequestorMatch) {
    refusals.push({
      pointer: '/requestor',
      detail: 'is not the caller; only where requireRequestorMatch is "false" may callers name another requester',
      audit: { kind: 'entry', attribute: 'requestor', value: named },
    })
  }
  const requester = found.kind === 'entry' ? found.entry.identity : undefined
  return { requester: named, caller: caller.uid, who: { requester, caller: caller.identity } }
}

/** The login as the directory spells it, since targets may take another spelling for another user. */
async function readSubject(
  body: CallBody,
  user: WorkflowCall['user'],
  caller: Subject,
  { subject: rules }: CallRights,
  { directory, loginAttributes }: Pick<CallHost, 'directory' | 'loginAttributes'>,
  refusals: Refusal[],
): Promise<{ readonly login: string; readonly identity?: Identity; readonly bound?: BoundSubject }> {
  const { userID } = user
  const { name: workflow, uidAttributeName } = body
  const { attributes } = body.user
  const found = await findLogin(userID, directory)
  const identity = found.kind === 'entry' ? { identity: found.entry.identity } : {}
  const pointerOf = (name: string): string => {
    const at = attributes.findIndex((attribute) => attribute.name.toLowerCase() === name.toLowerCase())
    return at < 0 ? '/user/uid' : jsonPointer(['user', 'attributes', at, 'values'])
  }
  const detail = found.kind === 'none' ? loginProblem(userID) : undefined
  if (detail !== undefined) {
    const problems = [{ pointer: pointerOf(uidAttributeName), detail: `${detail}, since no user has this login yet` }]
    throw new GatewayError('UNPROCESSABLE', `the login of a new user ${detail}`, { problems })
  }
  if (rules.includes('any')) return { login: userID, ...identity }
  const refuse = (name: string, detail: string): void => {
    refusals.push({ pointer: pointerOf(name), detail, audit: { kind: 'entry', attribute: 'subject', value: userID } })
  }
  if (!(await isCovered(found, userID, caller, rules, directory))) {
    const allowed = rules.length === 1 && rules[0] === 'caller' ? 'is not the caller' : 'is not one of these users'
    refuse(uidAttributeName, `${allowed}; the parameter "subject" says whom callers may act for`)
    return { login: userID }
  }
  const own = found.kind === 'entry' ? found.entry.attributes : caller.attributes
  const ofLogins = loginAttributes(workflow)
  const named = ofLogins === 'any' ? attributes.map(({ name }) => name) : ofLogins
  const checked = new Set([...namingAttributes(found, caller), ...Array.from(named, (one) => one.toLowerCase())])
  for (const name of checked) {
    if (sameLogin(name, uidAttributeName)) continue
    const isOwn = (value: string): boolean => [userID, ...own.values(name)].some((one) => sameLogin(one, value))
    if (!user.attributes.values(name).every(isOwn)) refuse(name, 'names another user than the subject')
  }
  const bound: BoundSubject = { attributes: ofLogins === 'any' ? ofLogins : [...checked] }
  if (found.kind === 'entry') return { login: found.login, ...identity, bound }
  return {
    login: userID,
    bound,
    ...(isOwnLogin(found, userID, callerRef(caller)) ? { identity: caller.identity } : {}),
  }
}

async function isCovered(
  found: FoundLogin,
  login: string,
  caller: Subject,
  rules: readonly SubjectRule[],
  directory: Pick<Directory, 'search'>,
): Promise<boolean> {
  for (const rule of rules) {
    if (rule === 'any') return true
    if (rule === 'caller') {
      if (isOwnLogin(found, login, callerRef(caller))) return true
    } else if (found.kind === 'entry') {
      const filter = rule.bind((name) => caller.attributes.values(name))
      if (filter === undefined) continue
      const matching = await directory.search({ base: found.entry.dn, scope: 'base', filter, limit: 1 })
      if (matching.length > 0) return true
    }
  }
  return false
}

/** Attributes that may identify the user: a call must not give one user the name of another. */
function namingAttributes(found: FoundLogin, { link, dn }: Subject): readonly string[] {
  const [rdn = []] = (found.kind === 'entry' ? found.entry.dn : dn).rdns
  const names = ['uid', ...(link?.uidAttr === undefined ? [] : [link.uidAttr]), ...rdn.map(({ type }) => type)]
  return [...new Set(names.map((name) => name.toLowerCase()))]
}

interface NamedMemberships {
  readonly groups: readonly string[]
  readonly known: Pick<CallClaims, 'keepGroups' | 'groupChanges'>
}

/**
 * Without a list, and outside the groups that the body may name, memberships don't change. An empty list ends them only
 * where the configuration allows groups: callers send it in every body.
 */
function readGroups(named: readonly string[] | undefined, rights: CallRights, refusals: Refusal[]): NamedMemberships {
  const { allowGroups } = rights
  const unknown: NamedMemberships = { groups: [], known: { keepGroups: true } }
  if (named === undefined || (rights === programRights && named.length === 0)) return unknown
  if (allowGroups.includes('*')) return { groups: named, known: { keepGroups: false } }
  for (const [i, group] of named.entries()) {
    if (isGroupIn(allowGroups, group)) continue
    refusals.push({
      pointer: jsonPointer(['user', 'groups', i]),
      detail: 'is not a group that callers may name; the parameter "allowGroups" lists the allowed groups',
      audit: { kind: 'group', attribute: 'groups', value: group },
    })
  }
  if (allowGroups.length === 0) return unknown
  return {
    groups: [],
    known: { keepGroups: true, groupChanges: { add: named, remove: withoutGroups(allowGroups, named) } },
  }
}

/** Texts that are stored and shown as one line, as users type them into a field. */
const line = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'must not have control characters')

const required = (max: number) => line(max).min(1)

/** Whether a login is shown as it is compared, so that it can't look like another one. */
export const isLogin = (login: string): boolean =>
  login !== '' && login.trim() === login && login.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(login)

/** The body of a call: spec 2.4. `dn` and `directory` are accepted, since callers send them, and ignored. */
export const callSchema = z.strictObject({
  requestor: z.string().max(256).refine(isLogin, 'must be a login').optional(),
  name: required(256),
  uidAttributeName: required(256),
  user: z.strictObject({
    uid: line(256).optional(),
    dn: line(2_000).optional(),
    directory: line(256).optional(),
    attributes: z
      .array(z.strictObject({ name: required(256), values: z.array(storableText(20_000)).max(1_000) }))
      .max(500)
      .default([]),
    groups: z.array(required(1_000)).max(2_000).optional(),
    userPassword: storableText(1_000).min(1).optional(),
  }),
  reason: storableText(2_000).optional(),
  requestParams: z
    .record(z.string(), storableText(20_000))
    .refine((params) => Object.keys(params).length <= 100, 'has more than 100 members')
    .optional(),
})

export type CallBody = z.infer<typeof callSchema>

export const maxBodyBytes = 1024 * 1024
