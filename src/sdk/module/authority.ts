import { resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import { readSmallFile } from '#kernel/small-file.ts'
import { text } from './parameter-types.ts'
import type { Params } from './params.ts'
import type { ParseContext } from './parse-context.ts'

/** The certificate authority that a module trusts instead of the system's own. */
export type Authority = { readonly file: string } | { readonly pem: string } | undefined

export const authorityParameters = {
  caFile: text({
    about:
      "A PEM file with the certificate authority of the server, relative to the configuration folder; the system's own when absent.",
  }),
  certificate: text({ about: 'The certificate authority itself, as PEM text.' }),
}

export function readAuthority(
  { caFile, certificate }: { readonly caFile: string | undefined; readonly certificate: string | undefined },
  params: Params,
  issues: Issues,
  { folder }: ParseContext,
): Authority {
  if (caFile !== undefined && certificate !== undefined) {
    issues.error(params.pathOf('certificate'), '"certificate" cannot be given beside "caFile"')
  }
  if (caFile !== undefined) return { file: resolve(folder, caFile) }
  return certificate === undefined ? undefined : { pem: certificate }
}

/** The PEM text, read when the module is created. Throws with the file's name if that fails. */
export async function loadAuthority(authority: Authority): Promise<string | undefined> {
  if (authority === undefined || 'pem' in authority) return authority?.pem
  try {
    return await readSmallFile(authority.file)
  } catch (cause) {
    throw new Error(`the certificate authority in ${authority.file} cannot be read`, { cause })
  }
}
