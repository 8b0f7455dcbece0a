import { createHash } from 'node:crypto'
import { discoveryPath, keysPath } from '#protocols/sts/discovery-document.ts'
import type { IssuerDocuments } from '#sdk/sts/token-keys.ts'

/** One document as it is put somewhere. */
export interface IssuerFile {
  /** Below the place that stands for the issuer, without a slash at the beginning. */
  readonly path: string
  readonly text: string
  readonly contentType: string
  readonly cacheControl: string
}

/** The keys come first: whoever finds the discovery document finds what it names. */
export function issuerFiles({ discovery, keys, maxAgeSeconds }: IssuerDocuments): readonly IssuerFile[] {
  const cacheControl = `public, max-age=${maxAgeSeconds}`
  const file = (path: string, content: object): IssuerFile => ({
    path: path.slice(1),
    text: JSON.stringify(content),
    contentType: 'application/json',
    cacheControl,
  })
  return [file(keysPath, keys), file(discoveryPath, discovery)]
}

/** Another for every other content. */
export function fingerprint(files: readonly IssuerFile[]): string {
  return createHash('sha256').update(JSON.stringify(files)).digest('base64url')
}
