-- SPDX-License-Identifier: MIT
-- Links of a document of the repository, as the site of `make docs` has them: documents become pages,
-- other files lie below files/. The variable `from` is the document's path; tools/dev/docs.sh copies.
local from = ""

-- a/b/../c -> a/c
local function normal(path)
    local parts = {}
    for part in path:gmatch("[^/]+") do
        if part == ".." then
            table.remove(parts)
        elseif part ~= "." then
            table.insert(parts, part)
        end
    end
    return table.concat(parts, "/")
end

-- The page of a document: the same rule as page_of in tools/dev/docs.sh.
local function page_of(path)
    if path == "docs/README.md" then
        return "index.html"
    end
    local name = path:gsub("^docs/", ""):gsub("/README%.md$", ".md"):gsub("/", "-"):gsub("%.md$", "")
    return name .. ".html"
end

local function moved(target)
    if target:match("^%a[%w+.-]*:") or target:match("^#") or target == "" then
        return target
    end
    local path, mark = target:match("^([^#]*)(.*)$")
    local folder = from:match("^(.*)/[^/]*$") or ""
    path = normal(folder .. "/" .. path)
    return (path:match("%.md$") and page_of(path) or "files/" .. path) .. mark
end

return {
    { Meta = function(meta) from = pandoc.utils.stringify(meta.from) end },
    {
        Link = function(link) link.target = moved(link.target) return link end,
        Image = function(image) image.src = moved(image.src) return image end,
        -- Wide tables scroll by themselves, so that the page does not.
        Table = function(wide) return pandoc.Div({ wide }, { class = "table" }) end,
    },
}
