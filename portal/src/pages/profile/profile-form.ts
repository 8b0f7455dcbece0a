import type { MainConfig, ProfileChange, UserData } from '#features/portal/contract/main.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import type { MessageKey } from '../../app/messages.ts'

export type FieldValues = Readonly<Record<string, string>>

/** The fields of the form, in their order; the login can never be changed. */
export const fieldsOf = ({ attributeNameList, attributes, uidAttributeName, canEditUser }: MainConfig) =>
  attributeNameList.flatMap((name) => {
    const field = attributes[name]
    if (field === undefined || !field.show) return []
    return [{ ...field, readOnly: field.readOnly || !canEditUser || name === uidAttributeName }]
  })

export const valuesOf = (user: UserData): FieldValues =>
  Object.fromEntries(user.attributes.map(({ name, values }) => [name, values.join(', ')]))

/** The problem of a value by the rules that the browser knows; the gateway knows them all. */
export function fieldProblem(
  field: FormAttributeView,
  value: string,
): { readonly key: MessageKey; readonly values?: { readonly count: number } } | undefined {
  const length = [...value].length
  if (value.trim() === '') return field.required ? { key: 'field.required' } : undefined
  if (field.minChars && length < field.minChars) return { key: 'field.tooShort', values: { count: field.minChars } }
  if (field.maxChars && length > field.maxChars) return { key: 'field.tooLong', values: { count: field.maxChars } }
  if (field.type === 'list' && !field.values.some((item) => item.value === value)) return { key: 'field.notListed' }
  return undefined
}

/** Only changed fields are sent. */
export function changeOf(fields: readonly FormAttributeView[], before: FieldValues, now: FieldValues): ProfileChange {
  const change: Record<string, { name: string; value: string }> = {}
  for (const { name, readOnly } of fields) {
    const value = now[name] ?? ''
    if (!readOnly && value !== (before[name] ?? '')) change[name] = { name, value }
  }
  return change
}
