import { isSecretAttribute } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { flag, list } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

const attribute = 'UserJSON'
/** Clients and proxies refuse longer headers. */
const longestHeader = 6 * 1024

/** Describes the caller as JSON: to the client, or to the filters after this one. */
export default defineFilter({
  className: 'filters.UserToJSON',
  aliases: ['com.tremolosecurity.proxy.filters.UserToJSON'],
  ...withParameters({
    doProxy: flag({
      about:
        '`"false"`: answers with the JSON, as the body and in the header `UserJSON`, which is left out if the JSON is longer than 6 KiB. `"true"`: the filters after this one see the JSON in the attribute `UserJSON`.',
    }),
    attributesToIgnore: list({ about: 'Attributes that are left out. Passwords, keys and tokens always are.' }),
  }),
  answers: 'sometimes',
  create: ({ doProxy, attributesToIgnore }) => {
    const ignored = new Set([attribute, ...attributesToIgnore].map((name) => name.toLowerCase()))
    const isShown = (name: string): boolean => !ignored.has(name.toLowerCase()) && !isSecretAttribute(name)
    return {
      async handle({ subject }, next) {
        const body = userJson(subject, isShown)
        if (doProxy) {
          const attributes = subject.attributes.clone()
          attributes.set(attribute, [body])
          return next({ ...subject, attributes })
        }
        const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
        const named = body.length > longestHeader ? {} : { [attribute.toLowerCase()]: body }
        return { status: 200, headers: { ...headers, ...named }, body }
      },
    }
  },
})

/** In the form of OpenUnison's AuthInfo. ASCII only, so that it fits into a header. */
function userJson({ dn, level, chain, attributes }: Subject, isShown: (name: string) => boolean): string {
  const shown = [...attributes].filter(([name]) => isShown(name))
  const attribs = Object.fromEntries(
    shown.map(([name, values]) => [name, { values: [...values], name, dataType: 'string' }]),
  )
  const user = { userDN: dn.toString(), attribs, authLevel: level, authChain: chain, authComplete: true }
  return JSON.stringify(user).replace(/[^\x20-\x7e]/g, escaped)
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
