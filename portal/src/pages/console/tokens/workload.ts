interface Workload {
  readonly namespace: string
  readonly serviceAccount: string
}

/** A workload of a cluster by its login, such as `system:serviceaccount:shop:cart`. */
export function readWorkload(login: string): Workload | undefined {
  const [, namespace, serviceAccount] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(login) ?? []
  return namespace === undefined || serviceAccount === undefined ? undefined : { namespace, serviceAccount }
}

/** The login of a workload; undefined unless both names are given. */
export const subjectOf = ({
  namespace = '',
  serviceAccount = '',
}: {
  readonly [name in keyof Workload]?: string | undefined
}): string | undefined =>
  namespace === '' || serviceAccount === '' ? undefined : `system:serviceaccount:${namespace}:${serviceAccount}`
