import { scimMediaType } from '#protocols/scim/scim-error.ts'

const accepted = new Set([scimMediaType, 'application/json'])

/** `application/scim+json`, `application/json` or a type that `other` matches, in no other charset than UTF-8. */
export function isJsonContent(contentType: string | undefined, other?: RegExp): boolean {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (!isJson(type.trim(), other)) return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=')
    return name.trim() !== 'charset' || ['utf-8', '"utf-8"', 'utf8'].includes(value.trim())
  })
}

const isJson = (type: string, other: RegExp | undefined): boolean => accepted.has(type) || other?.test(type) === true

/** Whether the Accept header, where there is one, lets a JSON answer through. */
export function acceptsJson(accept: string | undefined, other?: RegExp): boolean {
  if (accept === undefined || accept.trim() === '') return true
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
      return !refused && (type === '*/*' || type === 'application/*' || isJson(type, other))
    })
}
