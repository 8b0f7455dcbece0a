/** A Kubernetes object as its users call it: `RoleBinding team/admins`. Its path, where that has another form. */
export function objectText({
  name: path,
  objectKind,
}: {
  readonly name: string
  readonly objectKind?: string
}): string {
  const [, namespace, plural, name] = /(?:\/namespaces\/([^/]+)(?=\/[^/]+\/))?\/([^/]+)\/([^/]+)$/.exec(path) ?? []
  if (plural === undefined || name === undefined) return path
  return `${objectKind ?? plural} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
