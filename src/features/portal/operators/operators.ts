import * as z from 'zod'
import type { ProfileForm } from '#features/portal/access/profile-form.ts'
import type { FoundUser, OperatedUser, OperatorUpdate } from '#features/portal/contract/operators.ts'
import * as schemas from '#features/portal/contract/operators.ts'
import type { PortalHost } from '#features/portal/host.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter as EntryFilter } from '#identity/filter/ast.ts'
import { groupNamesOf } from '#identity/group-names.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { placeBelow } from '#sdk/api/api-description.ts'
import { answer, badRequest, notFound, privateErrors } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import { pathBelow, readQuery } from '#sdk/api/routes.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { formAttributeView, listItem } from '#sdk/contract/forms.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { maxFormAttributes, maxValueLength } from '#sdk/forms/form-attribute.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import { type OperatorsSettings, parameters, parseOperators } from './operators-settings.ts'

/** The API of the page on which operators find other users, and see and change their profiles. */
export default defineFilter<OperatorsSettings>({
  className: 'filters.Operators',
  aliases: ['com.tremolosecurity.scalejs.ws.ScaleJSOperator'],
  parameters,
  answers: true,
  errors: privateErrors,
  parse: parseOperators,
  summarize: ({ given }) => [{ label: 'profiles of', value: `${given.scaleMainAppName} ${given.scaleMainURI}` }],
  api: () => operatorsApi.served(placeBelow('/ops'), { formats: ['openapi', 'swagger'], users: operatorsApi }),
  profileOf: ({ given }) => ({ application: given.scaleMainAppName, uri: given.scaleMainURI }),
  create: createOperators,
})

interface OperatorParts {
  readonly settings: OperatorsSettings
  readonly host: PortalHost
  readonly profile: ProfileForm
}

function createOperators(settings: OperatorsSettings, host: PortalHost): Filter {
  const { scaleMainAppName, scaleMainURI } = settings.given
  const profile = host.profiles?.find(
    ({ application, uri }) => application === scaleMainAppName && uri === scaleMainURI,
  )
  if (profile === undefined) {
    throw new Error(`no filters.Main at "${scaleMainURI}" of the application "${scaleMainAppName}"`)
  }
  const parts: OperatorParts = { settings, host, profile: profile.form }
  return {
    async handle(exchange) {
      const { subject } = exchange
      if (subject.level === 0 || isAnonymousLogin(subject.uid)) {
        throw new GatewayError('AUTH_REQUIRED', 'operators must log in')
      }
      return await operatorsApi.answer(parts, exchange, pathBelow('/ops', exchange))
    },
  }
}

async function showConfig({ settings: { given, bases, searched, shown } }: OperatorParts): Promise<GatewayResponse> {
  const untouched = { picked: false, value: '' }
  return answer(
    wireForm(schemas.operatorsConfig, {
      ...given,
      rolesWidth: given.rolesWith || given.rolesWidth,
      searchBases: [...bases.keys()],
      searchableAttributes: searched.map((one) => ({ ...one, ...untouched })),
      resultsAttributes: shown.map((one) => ({ ...one, ...untouched })),
      scaleJsMainUri: given.scaleMainURI,
    }),
  )
}

const maxBodyBytes = 512 * 1024
const maxSearch = 256

const searchSchema = z.object({
  base: z.string().max(maxSearch),
  toSearch: z
    .array(
      z.object({ name: z.string().max(maxSearch), value: storableText(maxSearch), picked: z.boolean().default(false) }),
    )
    .max(100),
})

/** A row of the search that is not marked is ignored, as the page sends it. */
async function searchUsers(parts: OperatorParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { settings, host, profile } = parts
  const { base: label, toSearch } = await readJsonBody(request, searchSchema, maxBodyBytes)
  const base = settings.bases.get(label)
  if (base === undefined) throw badRequest(`There is no search base "${label.slice(0, 80)}".`)
  const picked = toSearch.filter((row) => row.picked)
  if (picked.length === 0 || picked.every(({ value }) => value.trim() === '')) {
    throw badRequest('Choose at least one attribute, and enter what to search for.')
  }
  const filters = picked
    .filter(({ value }) => value.trim() !== '')
    .map(({ name, value }) => searchFilter(name, value, settings))
  const { maxResults } = settings.given
  const found = await host.directory.search({
    base,
    scope: 'sub',
    filter: { kind: 'and', filters: [{ kind: 'present', attribute: profile.loginAttribute }, ...filters] },
    limit: maxResults + 1,
    attributes: [...new Set([profile.loginAttribute, ...settings.shown.map(({ name }) => name)])],
  })
  const users: readonly FoundUser[] = found.slice(0, maxResults).map(({ dn, attributes }) => ({
    dn: dn.toString(),
    ...Object.fromEntries(settings.shown.map(({ name }) => [name, attributes.first(name) ?? ''])),
  }))
  host.log.info('operator search', { login: subject.uid, base: label, users: users.length, requestId: request.id })
  const made = answer(users)
  // OpenUnison's page reads a plain list, which has no place for this.
  return found.length > maxResults ? { ...made, headers: { ...made.headers, 'x-more-results': 'true' } } : made
}

/** A star at an end of the text matches any text; one within it is a star. */
function searchFilter(name: string, written: string, { searched }: OperatorsSettings): EntryFilter {
  const attribute = searched.find((one) => one.name === name)?.name
  if (attribute === undefined) throw badRequest(`Users cannot be searched by "${name.slice(0, 80)}".`)
  const value = written.trim()
  const [starts, ends] = [value.startsWith('*'), value.length > 1 && value.endsWith('*')]
  const text = value.slice(starts ? 1 : 0, ends ? -1 : undefined)
  if (!starts && !ends) return { kind: 'equal', attribute, value }
  if (text === '') return { kind: 'present', attribute }
  if (starts && ends) return { kind: 'substring', attribute, any: [text] }
  return starts
    ? { kind: 'substring', attribute, any: [], final: text }
    : { kind: 'substring', attribute, initial: text, any: [] }
}

async function showUser(parts: OperatorParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { host, profile } = parts
  const { dn: given } = readQuery(request.query, ['dn'])
  if (given[0] === undefined) throw badRequest('dn is required.')
  const entry = await findUser(given[0], parts)
  const { dn, attributes } = entry
  const { fields, canEdit } = profile.viewOf(attributes)
  const { loginAttribute, roleAttribute } = profile
  const names = fields.map(({ name }) => name)
  const shown = roleAttribute === undefined || names.includes(roleAttribute) ? names : [...names, roleAttribute]
  const uid = attributes.first(loginAttribute)
  host.log.info('operator read', { login: subject.uid, user: uid, requestId: request.id })
  return answer({
    dn: dn.toString(),
    ...(uid === undefined ? {} : { uid }),
    attributes: shown.map((name) => ({ name, values: attributes.values(name), dataType: 'string' })),
    groups: roleAttribute === undefined ? await groupNamesOf(dn, host.directory) : attributes.values(roleAttribute),
    metaData: Object.fromEntries(fields.map((field) => [field.name, field])),
    canEditUser: canEdit,
  } satisfies OperatedUser)
}

const maxDn = 2_000

/** The user, if one of the search bases contains it. An entry elsewhere is answered like a missing one. */
async function findUser(written: string, { settings, host, profile }: OperatorParts): Promise<DirectoryEntry> {
  const missing = (): GatewayError => notFound('no user of that name below the search bases', 'User not found')
  if (written.length > maxDn) throw missing()
  const dn = parseDn(written)
  if (dn === undefined || ![...settings.bases.values()].some((base) => dn.isWithin(base))) throw missing()
  const filter: EntryFilter = { kind: 'present', attribute: profile.loginAttribute }
  const [entry] = await host.directory.search({ base: dn, scope: 'base', filter, limit: 1 })
  if (entry === undefined) throw missing()
  return entry
}

function parseDn(written: string): Dn | undefined {
  try {
    return Dn.parse(written)
  } catch {
    return undefined
  }
}

const updateSchema = z.strictObject({
  dn: z.string().max(maxDn),
  reason: reasonText,
  attributes: z
    .array(
      z.strictObject({
        name: z.string().max(256),
        values: z.array(z.string().max(maxValueLength)).max(1, 'must have one value'),
        dataType: z.string().max(64).optional(),
      }),
    )
    .max(maxFormAttributes)
    .refine((rows) => new Set(rows.map(({ name }) => name)).size === rows.length, 'has an attribute twice'),
})

/** Changes the permitted fields of another user by the portal's own workflow, in the operator's name. */
async function changeUser(parts: OperatorParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { host, profile } = parts
  const { dn, reason, attributes } = await readJsonBody(request, updateSchema, maxBodyBytes)
  const entry = await findUser(dn, parts)
  const { workflow } = profile
  if (workflow === undefined || !profile.viewOf(entry.attributes).canEdit) {
    throw new GatewayError('ACCESS_DENIED', `the profile of "${dn}" may not be changed`, {
      publicText: "This user's profile cannot be changed here.",
    })
  }
  const login = entry.attributes.first(profile.loginAttribute) ?? ''
  const values: Record<string, string> = Object.create(null)
  for (const { name, values: given } of attributes) values[name] = given[0] ?? ''
  const { errors, changed, whole } = profile.change(entry.attributes, values)
  // OpenUnison's status for an invalid form.
  if (errors.length > 0) return answer({ errors }, 500)
  if (changed.size === 0) return answer({ status: 'unchanged' } satisfies OperatorUpdate)
  whole.set(profile.loginAttribute, [login])
  const { status, changes } = await host.runs.run({
    head: {
      workflow,
      requester: subject.uid,
      who: { requester: subject.identity, subject: entry.identity },
      reason,
      requestId: request.id,
    },
    user: { userID: login, attributes: whole, groups: [] },
    keepGroups: true,
    cleared: [...changed].flatMap(([name, value]) => (value === '' ? [name] : [])),
    params: {},
  })
  // The page knows no other status of success than 200.
  if (status !== 'completed') return answer({ status: 'waiting' } satisfies OperatorUpdate)
  return answer({ status: changes === 0 ? 'unchanged' : 'completed' } satisfies OperatorUpdate)
}

const change = {
  body: 'UserUpdate',
  answer: 'UpdateResult',
  failures: {
    '403': 'The profile of this user cannot be changed',
    '404': 'No user of that name below the search bases',
    '500': 'Values that the profile does not accept',
  },
  handle: changeUser,
} as const

/** Everything below `/ops`. */
export const operatorsApi = new ServedApi<OperatorParts>({
  title: 'Operator API',
  version: '1.0.0',
  answers: {
    OperatorsConfig: schemas.operatorsConfig,
    FoundUser: schemas.foundUser,
    User: schemas.operatedUser,
    UpdateResult: schemas.operatorUpdate,
    Attribute: formAttributeView,
    AttributeValueListItem: listItem,
    Errors: mainErrors,
  },
  bodies: { UserSearch: searchSchema, UserUpdate: updateSchema },
  failure: { description: 'What is wrong', schema: 'Errors' },
  documentsAt: placeBelow('/ops'),
  operations: {
    getConfig: {
      route: 'GET /config',
      summary: 'What the operator page needs to know',
      answer: 'OperatorsConfig',
      handle: showConfig,
    },
    searchUsers: {
      route: 'PUT /search',
      summary: 'Finds users by the attributes that are picked',
      description:
        'A star at an end of a value matches any text. A header X-More-Results says that the search found more users than the answer contains.',
      body: 'UserSearch',
      answer: 'FoundUser[]',
      handle: searchUsers,
    },
    getUser: {
      route: 'GET /user',
      summary: 'The profile of a user',
      query: { dn: 'The name of the user in the directory' },
      requiredQuery: ['dn'],
      answer: 'User',
      failures: { '404': 'No user of that name below the search bases' },
      handle: showUser,
    },
    changeUser: {
      route: 'POST /user',
      summary: "Changes a user's profile by the workflow of the portal",
      ...change,
    },
    putUser: { route: 'PUT /user', summary: 'The same as POST', ...change },
  },
})
