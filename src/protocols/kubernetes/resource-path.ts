import { GatewayError } from '#kernel/errors.ts'

export interface ResourceAddress {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace?: string
}

const longestName = 253

/** The path of a collection, or of one object in it. BAD_REQUEST for what is no name of an object. */
export function resourcePath({ group, version, plural, namespace }: ResourceAddress, name?: string): string {
  const api = group === '' ? ['api', version] : ['apis', group, version]
  const place = namespace === undefined ? [] : ['namespaces', namespace]
  const parts = [...api, ...place, plural, ...(name === undefined ? [] : [name])]
  return `/${parts.map(segment).join('/')}`
}

/** The API server's own rule for names in paths; the dots would be resolved before it sees them. */
function segment(text: string): string {
  const wrong = text === '' || text === '.' || text === '..' || /[/%]/.test(text) || text.length > longestName
  if (wrong || !text.isWellFormed()) {
    throw new GatewayError(
      'BAD_REQUEST',
      `${JSON.stringify(text.slice(0, 300))} is not the name of a Kubernetes object`,
    )
  }
  return encodeURIComponent(text)
}
