import * as z from 'zod'
import type { ProfileForm } from '#features/portal/access/profile-form.ts'
import type { AttributeValues, UserData } from '#features/portal/contract/main.ts'
import {
  type MainParts,
  mayEdit,
  requireOwnLogin,
  shownAttributes,
  shownGroups,
} from '#features/portal/front/main-parts.ts'
import type { MainSettings } from '#features/portal/front/main-settings.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type FormAttribute, maxFormAttributes, maxValueLength, viewFormAttribute } from '#sdk/forms/form-attribute.ts'
import { checkForm, isServerSet } from '#sdk/forms/form-values.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const profileOperations = {
  getUser: { summary: "The caller's profile", answer: 'UserData', handle: showProfile },
  changeUser: {
    summary: "Changes the caller's profile",
    body: 'ProfileChange',
    answer: 'UserData',
    failures: { '500': 'Failed validation' },
    handle: changeProfile,
  },
} satisfies OperationTable<MainParts>

const maxBodyBytes = 512 * 1024

const change = z.strictObject({ name: z.string().max(256).optional(), value: z.string().max(maxValueLength) })
export const changesSchema = z
  .record(z.string(), change)
  .refine((given) => Object.keys(given).length <= maxFormAttributes, 'has too many members')

type Changes = z.infer<typeof changesSchema>

/** The caller's own entry as the directory has it now; for a user who isn't in the directory, the attributes of the login. */
async function showProfile(parts: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  return answer(await readProfile(parts, subject))
}

async function readProfile(parts: MainParts, subject: Subject): Promise<UserData> {
  const { settings, people } = parts
  const { uidAttributeName, roleAttribute } = settings.given
  const found = await people.ownEntry(subject)
  const valuesOf = valuesIn(settings, subject, found.kind === 'own' ? found.entry : undefined)
  const names = shownAttributes(settings, subject).map(({ name }) => name)
  const shown = roleAttribute === undefined || names.includes(roleAttribute) ? names : [...names, roleAttribute]
  const uid = names.includes(uidAttributeName) ? valuesOf(uidAttributeName)[0] : undefined
  const memberships = async () => (found.kind === 'anothers' ? [] : await people.groupsOf(subject.dn))
  const groups = roleAttribute === undefined ? shownGroups(parts, await memberships()) : valuesOf(roleAttribute)
  return {
    ...(uid === undefined ? {} : { uid }),
    dn: subject.dn.toString(),
    attributes: shown.map((name) => attributeValues(name, valuesOf(name))),
    groups,
  }
}

export const attributeValues = (name: string, values: readonly string[]): AttributeValues => ({
  name,
  values,
  dataType: 'string',
})

/** Values missing from the entry may come from the login, except for fields that users may have cleared. */
function valuesIn(
  { attributes }: MainParts['settings'],
  subject: Subject,
  entry: DirectoryEntry | undefined,
): (name: string) => readonly string[] {
  const filledIn = new Set(attributes.filter((field) => !isServerSet(field)).map(({ name }) => name))
  return (name) => {
    const stored = entry?.attributes.values(name) ?? []
    const isWhole = entry !== undefined && filledIn.has(name)
    return isWhole || stored.length > 0 ? stored : subject.attributes.values(name)
  }
}

/** Changes the permitted fields by the workflow, and shows the profile after it. 202: the run has to wait. */
async function changeProfile(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { settings, host, people } = parts
  const { request, subject } = exchange
  const { workflowName } = settings.given
  if (!mayEdit(settings, subject) || workflowName === undefined) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" may not change the profile`, {
      publicText: 'Profiles cannot be changed here.',
    })
  }
  const changes = await readJsonBody(request, changesSchema, maxBodyBytes)
  const login = await requireOwnLogin(parts, exchange, workflowName)
  const found = await people.ownEntry(subject)
  const entry = found.kind === 'own' ? found.entry : undefined
  const valuesOf = valuesIn(settings, subject, entry)
  const current = (name: string): string => valuesOf(name)[0] ?? ''
  const fields = shownAttributes(settings, subject).map((field) => locked(field, settings.given.uidAttributeName))
  const { errors, changed } = checkChanges(fields, changes, current)
  // OpenUnison's status for an invalid form.
  if (errors.length > 0) return answer({ errors }, 500)
  if (changed.size === 0) return answer(await readProfile(parts, subject))
  const attributes = wholeProfile(settings.attributes, changed, entry?.attributes ?? subject.attributes)
  attributes.set(settings.given.uidAttributeName, [login])
  const { status } = await host.runs.run({
    head: {
      workflow: workflowName,
      requester: subject.uid,
      who: { requester: subject.identity, subject: subject.identity },
      requestId: request.id,
    },
    user: { userID: login, attributes, groups: [] },
    keepGroups: true,
    cleared: [...changed].flatMap(([name, value]) => (value === '' ? [name] : [])),
    params: {},
  })
  return answer(await readProfile(parts, subject), status === 'completed' ? 200 : 202)
}

/** The profile, for operators who see and change those of others. */
export function profileForm(settings: MainSettings): ProfileForm {
  const { uidAttributeName, roleAttribute, workflowName } = settings.given
  const fieldsOf = (attributes: Attributes): FormAttribute[] =>
    shownAttributes(settings, { attributes }).map((field) => locked(field, uidAttributeName))
  return {
    loginAttribute: uidAttributeName,
    roleAttribute,
    workflow: workflowName,
    viewOf: (attributes) => ({
      fields: fieldsOf(attributes).map((field) => viewFormAttribute(field)),
      canEdit: mayEdit(settings, { attributes }),
    }),
    change: (attributes, values) => {
      const changes = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))
      const current = (name: string): string => attributes.first(name) ?? ''
      const { errors, changed } = checkChanges(fieldsOf(attributes), changes, current)
      return { errors, changed, whole: wholeProfile(settings.attributes, changed, attributes) }
    },
  }
}

/** A workflow that writes attributes by name removes those it does not get, so it gets all, with the changes. */
function wholeProfile(
  fields: readonly FormAttribute[],
  changed: ReadonlyMap<string, string>,
  present: Attributes,
): Attributes {
  const whole = present.pick(fields.map(({ name }) => name))
  for (const [name, value] of changed) whole.set(name, value === '' ? [] : [value])
  return whole
}

/** The login can't be changed by a form. */
const locked = (field: FormAttribute, loginAttribute: string): FormAttribute =>
  field.name.toLowerCase() === loginAttribute.toLowerCase() ? { ...field, readOnly: true } : field

/** Fields that are not sent stay unchanged, but a required field that was never set is required. */
function checkChanges(
  fields: readonly FormAttribute[],
  changes: Changes,
  current: (name: string) => string,
): { readonly errors: readonly string[]; readonly changed: ReadonlyMap<string, string> } {
  const posted: Record<string, string> = Object.create(null)
  const errors: string[] = []
  for (const [key, { name, value }] of Object.entries(changes)) {
    if (name !== undefined && name !== key) errors.push(`Invalid attribute ${key.slice(0, 80)}`)
    posted[key] = value
  }
  const concerned = fields.filter(
    (field) => Object.hasOwn(posted, field.name) || (!isServerSet(field) && current(field.name) === ''),
  )
  const checked = checkForm(concerned, posted, ({ name }) => current(name))
  const sent = concerned.filter((field) => !isServerSet(field) && Object.hasOwn(posted, field.name))
  const values = sent.map(({ name }) => [name, checked.values.get(name) ?? ''] as const)
  // An unchanged field keeps its values beside the one that the form shows.
  const changed = new Map(values.filter(([name, value]) => value !== current(name)))
  return { errors: [...errors, ...checked.errors], changed }
}
