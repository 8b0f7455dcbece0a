/** The files of `test/openunison-portal` with the objects of each model of groups, beside `projects.yaml`. */
export const projectSets = {
  internal: ['projects-internal', 'projects-first-login'],
  external: ['projects-external'],
  hybrid: ['projects-internal', 'projects-external', 'projects-hybrid'],
} as const
