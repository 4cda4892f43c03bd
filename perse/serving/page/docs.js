// The OpenAPI description as a page: each route with what it takes and gives.
const made = (tag, text) => Object.assign(document.createElement(tag), text === undefined ? {} : { textContent: text });
const place = document.getElementById("routes");

function schemaText(description, schema, depth = 0) {
  if (!schema || depth > 6) return "...";
  if (schema.$ref) return schemaText(description, schema.$ref.split("/").slice(1).reduce((at, name) => at?.[name], description), depth);
  const either = schema.anyOf || schema.oneOf;
  if (either) return either.map((one) => schemaText(description, one, depth)).filter((one, at, all) => all.indexOf(one) === at).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const inner = "  ".repeat(depth + 1), outer = "  ".repeat(depth);
  if (schema.type === "array") return `[${schema.items ? schemaText(description, schema.items, depth) : "..."}, ...]`;
  if (schema.type === "object" && schema.properties) {
    const lines = Object.entries(schema.properties).map(([name, value]) => {
      const wanted = (schema.required || []).includes(name) ? "" : "?";
      const said = value.description ? `   // ${value.description.split("\n")[0]}` : "";
      return `${inner}"${name}"${wanted}: ${schemaText(description, value, depth + 1)}${said}`;
    });
    return `{\n${lines.join("\n")}\n${outer}}`;
  }
  if (schema.additionalProperties) return `{name: ${schemaText(description, schema.additionalProperties, depth + 1)}}`;
  return schema.type || "any";
}

function shown(description, path, method, route) {
  const article = made("article");
  article.append(made("h3", `${method.toUpperCase()} ${path}`));
  if (route.description || route.summary) article.append(made("p", route.description || route.summary));
  const body = route.requestBody?.content?.["application/json"]?.schema;
  const sides = [["What it takes", body], ["What it gives", route.responses?.["200"]?.content?.["application/json"]?.schema]];
  const example = body?.examples?.[0] ?? route.requestBody?.content?.["application/json"]?.examples?.[0];
  if (example) { article.append(made("p", "Example"), made("pre", JSON.stringify(example, null, 2))); }
  for (const [title, schema] of sides) {
    if (!schema) continue;
    const details = made("details");
    details.append(made("summary", title), made("pre", schemaText(description, schema)));
    article.append(details);
  }
  const errors = Object.entries(route.responses || {}).filter(([code]) => code >= "400").map(([code, one]) => `${code}: ${one.description}`);
  if (errors.length) { const details = made("details"); details.append(made("summary", "Errors"), made("pre", errors.join("\n"))); article.append(details); }
  return article;
}

try {
  const answer = await fetch("openapi.json");
  const description = await answer.json();
  const all = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => [path, method, route]));
  const ours = all.filter(([path]) => /^\/(v1\/(judge|readers|adapters)|health|ready|version|metrics)/.test(path));
  const others = all.filter((one) => !ours.includes(one));
  place.replaceChildren(made("h2", "The judge"), ...ours.map((one) => shown(description, ...one)));
  if (others.length) place.append(made("h2", "Others"), ...others.map((one) => shown(description, ...one)));
} catch (error) {
  const problem = made("p", `openapi.json cannot be read (${error.message}).`);
  problem.className = "problem";
  place.replaceChildren(problem);
}
document.documentElement.dataset.ready = "yes";
