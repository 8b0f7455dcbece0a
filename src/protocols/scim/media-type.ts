import { scimMediaType } from '#protocols/scim/scim-error.ts'

const accepted = new Set([scimMediaType, 'application/json'])

/** `application/scim+json` or `application/json`, with any parameters but another charset than UTF-8. */
export function isJsonContent(contentType: string | undefined): boolean {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (!accepted.has(type.trim())) return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=')
    return name.trim() !== 'charset' || ['utf-8', '"utf-8"', 'utf8'].includes(value.trim())
  })
}

/** Whether the Accept header, where there is one, lets a JSON answer through. */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept.trim() === '') return true
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
      return !refused && (type === '*/*' || type === 'application/*' || accepted.has(type))
    })
}
